/*
 * Shortlist: ranking by a wide & deep model (arXiv 1606.07792). The conventions of <shortlist.h> hold. Entries do
 * not repeat these errors:
 *
 *   rows    SL_ENOTFOUND (a column or id is missing), SL_ETYPE (of a column), SL_EVALUE (its row, or line and column,
 *           is named), SL_ELIMIT (above 16,384 columns, 2^31 - 1 items, 2^32 - 1 values in bags), the source's
 *   files   SL_EIO, SL_EFORMAT, SL_EVERSION, SL_ECORRUPT (the first fault is named)
 *   items   SL_EBUSY (another thread updates or saves the table, or makes a recommender of it)
 */
#ifndef SHORTLIST_RANK_H
#define SHORTLIST_RANK_H

#include <shortlist.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Rows */

/* Layouts are Apache Arrow's: Arrow and NumPy columns need no copy. */
typedef enum sl_column_type {
    SL_COLUMN_F32 = 0,
    SL_COLUMN_F64 = 1,
    SL_COLUMN_I32 = 2,
    SL_COLUMN_I64 = 3,
    SL_COLUMN_TEXT = 4,  /* UTF-8; row r is bytes offsets[r] to offsets[r + 1] */
    SL_COLUMN_TEXTS = 5, /* row r is texts lists[r] to lists[r + 1], each as of TEXT */
    SL_COLUMN_VECTOR = 6 /* float[rows][dim] */
} sl_column_type;

typedef struct sl_column {
    const char *name;
    sl_column_type type;
    size_t dim;
    const void *values;
    const int64_t *offsets;
    const int64_t *lists;
    const uint8_t *valid; /* bit r % 8 of byte r / 8: row r is there; NULL: all */
} sl_column;

/* A block of rows. NaN and empty TEXT are missing too. */
typedef struct sl_table {
    size_t struct_size;
    size_t rows;
    size_t column_count;
    const sl_column *columns;
    /* For messages: file, line of each row (or NULL), rows before these. */
    const char *origin;
    const uint64_t *lines;
    uint64_t first_row;
} sl_table;

/* A source of rows, for several readings. next gives 1 to max_rows rows, valid until the next call, or 0 at the end.
 * Both return a status, with a failing library call's message. Threads: one at a time. */
typedef struct sl_rows {
    size_t struct_size;
    void *ctx;
    sl_status (*next)(void *ctx, size_t max_rows, sl_table *block);
    sl_status (*rewind)(void *ctx);
} sl_rows;

/* A CSV file (docs/SPEC.md), with rows up to 16 MB, as TEXT columns. */
typedef struct sl_csv sl_csv;

typedef struct sl_csv_params {
    size_t struct_size;
    char delimiter;           /* default ',' */
    int header;               /* nonzero (default): the first line names the columns */
    const char *const *names; /* in place of the header's */
    size_t name_count;
    const char *spec; /* its "csv" replaces the fields above */
    const sl_allocator *allocator;
} sl_csv_params;

SL_API void sl_csv_params_init_sized(sl_csv_params *params, size_t struct_size);
#define sl_csv_params_init(params) sl_csv_params_init_sized((params), sizeof *(params))

/* Opens path and reads its header. Errors: SL_EFORMAT (no header, a name twice). */
SL_API SL_MUST_USE sl_status sl_csv_open(const char *path, const sl_csv_params *params, sl_csv **out);
SL_API void sl_csv_free(sl_csv *csv);
/* Gives the file as a source, which csv must outlive. SL_EFORMAT: a wrong number of fields, or an open quote; its line
 * is named. */
SL_API SL_MUST_USE sl_status sl_csv_rows(sl_csv *csv, sl_rows *out);

typedef struct sl_table_cursor {
    const sl_table *table;
    size_t at;
    sl_column columns[1]; /* private */
} sl_table_cursor;

SL_API size_t sl_table_cursor_size(size_t column_count);
/* Gives a table as a source, which table and cursor must outlive. cursor has sl_table_cursor_size(table->column_count)
 * bytes, aligned as by malloc, and becomes out->ctx. */
SL_API SL_MUST_USE sl_status sl_table_rows(const sl_table *table, sl_table_cursor *cursor, sl_rows *out);

/* ---- Ranker */

/* A model, immutable, for any number of threads. Handles are counted: free yours at any time, a recommender keeps its
 * own. */
typedef struct sl_ranker sl_ranker;

typedef enum sl_loss { SL_LOSS_LOGISTIC = 0, SL_LOSS_MULTICLASS = 1, SL_LOSS_SQUARED = 2 } sl_loss;

typedef struct sl_epoch {
    size_t epoch;      /* from 1 */
    double train_loss; /* mean, as rows came */
    double valid_loss; /* NaN without validation rows */
    double valid_auc;  /* NaN but for logistic loss */
    double seconds;    /* training alone */
    size_t rows;
    int best; /* nonzero: best so far */
} sl_epoch;
typedef void (*sl_epoch_fn)(void *ctx, const sl_epoch *epoch);

/* Writes an id's vector to out, for vector features whose column holds ids. Failures are passed on. Threads: any. */
typedef sl_status (*sl_lookup_fn)(void *ctx, const char *feature, uint64_t id, float *out, size_t dim);

/* Numbers that the deep part's products multiply in training. Weights, optimisers, sums, losses, validation and the
 * model stay f32. bf16 and fp16 are emulated where the machine or oneDNN cannot multiply them. Emulation rounds numbers
 * and multiplies them as f32. It is no faster than f32.
 *   DEFAULT   f32; with resume, the checkpoint's
 *   AUTO      bf16 where the machine has its instructions (avx512_bf16 or AMX), else f32; with resume, the checkpoint's
 *   FP16      with a loss scale: a step whose gradients overflow is skipped */
typedef enum sl_train_precision {
    SL_TRAIN_DEFAULT = 0,
    SL_TRAIN_F32 = 1,
    SL_TRAIN_BF16 = 2,
    SL_TRAIN_FP16 = 3,
    SL_TRAIN_AUTO = 4
} sl_train_precision;

/* Dense layers of the model that training makes.
 *   F32    floats
 *   INT8   weights in s8, inputs in u8: quantisation-aware training (arXiv 1712.05877). The forward pass computes what
 *          the INT8 model computes. Gradients go straight through the rounding. The model made is quantised */
typedef enum sl_train_layers { SL_TRAIN_LAYERS_F32 = 0, SL_TRAIN_LAYERS_INT8 = 1 } sl_train_layers;

/* How INT8 layers that train get the ranges of their inputs and the scales of their weights.
 *   OBSERVED   ranges: moving averages of each mini-batch's extremes. Scales: of each output's largest weight
 *   LEARNED    both by gradients, with the weights (arXiv 1902.08153) */
typedef enum sl_train_ranges { SL_TRAIN_RANGES_OBSERVED = 0, SL_TRAIN_RANGES_LEARNED = 1 } sl_train_ranges;

typedef struct sl_train_params {
    size_t struct_size;
    size_t threads;
    const char *checkpoint;  /* file of the training's state, written atomically */
    size_t checkpoint_steps; /* mini-batches between checkpoints within an epoch; 0: none */
    int resume;              /* nonzero: goes on from checkpoint, if any, as if uninterrupted on as many threads */
    size_t epochs;           /* 0: the spec's; seed too */
    uint64_t seed;
    sl_lookup_fn lookup;
    void *lookup_ctx;
    sl_epoch_fn epoch;
    void *epoch_ctx;
    const sl_allocator *allocator;
    sl_log_fn log;
    void *log_ctx;
    sl_progress_fn progress; /* in rows of all epochs; a cancelled call leaves its checkpoint */
    void *progress_ctx;
    sl_train_precision precision;
    double loss_scale; /* FP16: 1 to 2^24, static; 0: from 2^16, halved on overflow, doubled after 2,000 good steps */
    const sl_ranker *init;    /* begin with its fitted features and weights; NULL: fit and draw them */
    const sl_ranker *teacher; /* distil it (arXiv 1503.02531); NULL: labels alone */
    double temperature;       /* divides both models' logits in the soft loss: 0.001 to 1000, default 2 */
    double soft;              /* share of the soft loss, 0 to 1; default 0.7. With 1, rows need no labels */
    double rate_scale;        /* multiplies the spec's rates; default 1 */
    sl_train_layers layers;   /* with INT8, precision is F32 */
    sl_train_ranges ranges;   /* of INT8 */
    const char *const *keep;  /* names of layers that stay F32, "dense.I" */
    size_t keep_count;
} sl_train_params;

SL_API const char *sl_train_precision_name(sl_train_precision precision); /* "bf16"; "?": none */
SL_API void sl_train_params_init_sized(sl_train_params *params, size_t struct_size);
#define sl_train_params_init(params) sl_train_params_init_sized((params), sizeof *(params))

typedef struct sl_train_report {
    size_t struct_size;
    size_t rows, valid_rows;
    size_t epochs, best_epoch;
    double train_loss, valid_loss, valid_auc; /* of the best epoch */
    double read_s;                            /* fitting and encoding */
    double epoch_s, rows_per_s;               /* this call's mean, training alone */
    size_t wide_nonzero;                      /* not zeroed by L1 */
    sl_train_precision precision;             /* taken: F32 (also without a deep part), BF16 or FP16 */
    int emulated;                             /* nonzero: rounded, then multiplied as f32 */
    double loss_scale;                        /* FP16: at the end; else 0 */
    size_t skipped_steps;                     /* FP16: steps whose gradients overflowed, earlier calls' too */
    sl_train_layers layers;
    sl_train_ranges ranges;
} sl_train_report;

/* Trains a model. A deep part needs oneDNN. spec is JSON text (docs/SPEC.md). train is read twice and kept encoded, 4
 * bytes a feature and row. valid NULL: the spec's share of train. report may be NULL. Errors: SL_EINVAL (the spec, by
 * its key; fewer than 2 rows; precision, loss_scale), SL_EVALUE (one class alone; a loss not finite, or gradients that
 * always overflow: the last good checkpoint stays), SL_ELIMIT (a vocabulary), SL_EUNSUPPORTED, the checkpoint's,
 * SL_EFORMAT (a checkpoint of another training, or in another precision).
 *
 * With init, spec has the "label", "features" and layers of init's spec. NULL takes init's spec. With a teacher, train
 * is read a third time, by the teacher's columns. The teacher has the same loss and classes, else SL_EINVAL. A row's
 * loss is (1 - soft) times that of its label and soft * temperature^2 times the cross entropy with the teacher's
 * probabilities. Under squared loss the latter is the squared distance from the teacher's value, without temperature.
 * With soft 1, neither labels nor weights are read, and validation compares with the teacher.
 *
 * With layers INT8, the layers are in INT8 after a tenth of the steps, and with init from the first step. Their ranges
 * begin by calibration on up to 4,096 training rows. Validation judges the model in INT8. Errors: SL_EINVAL (no deep
 * part, every layer kept, all inputs of a layer 0), SL_ENOTFOUND (a layer's name), SL_EVALUE (inputs of a layer that
 * are not finite). */
SL_API SL_MUST_USE sl_status sl_ranker_train(const char *spec, const sl_rows *train, const sl_rows *valid,
                                             const sl_train_params *params, sl_ranker **out, sl_train_report *report);

/* Makes an untrained model: fitted features, first weights. One row or class is enough. Only seed, lookup and allocator
 * of params count. Errors: as above, but for oneDNN, loss and checkpoint. */
SL_API SL_MUST_USE sl_status sl_ranker_create(const char *spec, const sl_rows *rows, const sl_train_params *params,
                                              sl_ranker **out);
SL_API void sl_ranker_free(sl_ranker *ranker);

/* Writes the model as sl_index_save does. */
SL_API SL_MUST_USE sl_status sl_ranker_save(const sl_ranker *ranker, const char *path, const sl_save_params *params);

typedef struct sl_ranker_open_params {
    size_t struct_size;
    const sl_allocator *allocator;
    sl_log_fn log;
    void *log_ctx;
} sl_ranker_open_params;
SL_API void sl_ranker_open_params_init_sized(sl_ranker_open_params *params, size_t struct_size);
#define sl_ranker_open_params_init(params) sl_ranker_open_params_init_sized((params), sizeof *(params))

/* Reads a saved model into memory and verifies it. */
SL_API SL_MUST_USE sl_status sl_ranker_open(const char *path, const sl_ranker_open_params *params, sl_ranker **out);

typedef struct sl_file_check_params {
    size_t struct_size;
    const sl_allocator *allocator; /* of sl_ranker_check */
    sl_progress_fn progress;       /* in bytes */
    void *progress_ctx;
} sl_file_check_params;
SL_API void sl_file_check_params_init_sized(sl_file_check_params *params, size_t struct_size);
#define sl_file_check_params_init(params) sl_file_check_params_init_sized((params), sizeof *(params))

typedef struct sl_ranker_check_report {
    size_t struct_size;
    size_t features, parameters;
    size_t sections_checked;
    uint64_t bytes_checked;
    int checkpoint; /* 1: the file also holds a training's state, checked too */
} sl_ranker_check_report;

/* Verifies every byte of a model's file, and all that opening and resuming require. *report is filled on failure too,
 * with what was found sound. */
SL_API SL_MUST_USE sl_status sl_ranker_check(const char *path, const sl_file_check_params *params,
                                             sl_ranker_check_report *report);

typedef struct sl_ranker_info {
    size_t struct_size;
    sl_loss loss;
    size_t outputs; /* scores a row: 1, or classes */
    size_t features;
    size_t dense_width; /* floats a row */
    size_t id_count;    /* single-valued categorical features */
    size_t bag_count;   /* multi-valued ones */
    size_t deep_inputs; /* 0: no deep part */
    size_t layers;      /* the last included */
    size_t first_width;
    size_t wide_size;
    size_t parameters;
    size_t bytes;         /* in memory, with vocabularies */
    const char *spec;     /* JSON text, the ranker's */
    int uses_onednn;      /* 0: plain C predicts */
    size_t embeddings;    /* tables */
    size_t multiply_adds; /* of the dense layers, a row */
    size_t dense_zeros;   /* weights of the dense layers that are 0 */
} sl_ranker_info;
SL_API SL_MUST_USE sl_status sl_ranker_get_info(const sl_ranker *ranker, sl_ranker_info *out);
/* Output i's label ("" for regression), owned by the ranker. NULL out of range. */
SL_API const char *sl_ranker_class(const sl_ranker *ranker, size_t i);

/* ---- Smaller models */

/* Importance of a hidden unit. */
typedef enum sl_prune_criterion {
    SL_PRUNE_TAYLOR = 0, /* squared first-order change of the loss without it (arXiv 1906.10771) */
    SL_PRUNE_NORM = 1    /* norm of its weights in, times that of its weights out; needs no rows */
} sl_prune_criterion;

typedef struct sl_prune_params {
    size_t struct_size;
    double units;         /* share of hidden units to cut, 0 (default) to below 1 */
    double multiply_adds; /* in place of units: share of multiply-adds to cut at least, by cutting units */
    double weights;       /* share of the dense layers' weights to set to 0 */
    double weights_end;   /* share of the training's steps after which all of these are 0; default 0.5 */
    sl_prune_criterion criterion;
    int per_layer;   /* nonzero: each layer loses the same share; 0 (default): the least important of all layers */
    size_t multiple; /* widths are rounded up to multiples of it; default 1 */
    size_t rows;     /* training rows that TAYLOR looks at; default 65,536; 0: all */
} sl_prune_params;
SL_API void sl_prune_params_init_sized(sl_prune_params *params, size_t struct_size);
#define sl_prune_params_init(params) sl_prune_params_init_sized((params), sizeof *(params))

#define SL_PRUNE_LAYERS 8u

typedef struct sl_prune_report {
    size_t struct_size;
    size_t hidden_layers;
    size_t hidden_before[SL_PRUNE_LAYERS], hidden[SL_PRUNE_LAYERS]; /* widths */
    size_t parameters_before, parameters;
    size_t bytes_before, bytes;                 /* in memory */
    size_t multiply_adds_before, multiply_adds; /* zeros count: a dense product is not faster by them */
    size_t dense_weights, dense_zeros;
    size_t rows, valid_rows, epochs, best_epoch; /* of the training */
    /* Measures of the validation rows: before, after cutting units, and at the end. NaN without such rows. AUC is NaN
     * but for logistic loss. */
    double valid_loss_before, valid_loss_cut, valid_loss;
    double valid_auc_before, valid_auc_cut, valid_auc;
    double importance_s, read_s, epoch_s;
} sl_prune_report;

/* Makes a smaller model of a trained one: cuts hidden units, or sets weights to 0, or both. Cutting units makes layers
 * narrower. The smaller model then trains on by the ranker's spec and `training`, which may have a teacher but no init.
 * Weights are set to 0 while it trains, the smallest first, by the cubic schedule of arXiv 1710.01878. They stay 0.
 * With train NULL, the call cuts at once and does not train, and units are cut by NORM only. report may be NULL.
 * Errors: as of sl_ranker_train; SL_EINVAL (nothing to cut, no deep part, a share that cannot be reached). */
SL_API SL_MUST_USE sl_status sl_ranker_prune(const sl_ranker *ranker, const sl_rows *train, const sl_rows *valid,
                                             const sl_prune_params *params, const sl_train_params *training,
                                             sl_ranker **out, sl_prune_report *report);

/* ---- Exchange with other formats: outputs point into the ranker */

typedef enum sl_feature_form { SL_FORM_DENSE = 0, SL_FORM_ID = 1, SL_FORM_BAG = 2 } sl_feature_form;
typedef enum sl_side { SL_SIDE_USER = 0, SL_SIDE_ITEM = 1, SL_SIDE_PAIR = 2 } sl_side;
typedef struct sl_feature_info {
    size_t struct_size;
    const char *name;
    sl_feature_form form;
    sl_side side;
    size_t at;    /* first column of sl_encoded.dense, column of ids, or number of the bag */
    size_t width; /* DENSE: columns */
    size_t size;  /* ID, BAG: ids are below it */
    /* First weight in the wide part, first input of the deep part; SIZE_MAX: none. */
    size_t wide_at;
    size_t deep_at;
    size_t deep_width;  /* width, or the embedding's dim */
    const char *tensor; /* embedding ("embedding.NAME"), maybe shared; NULL: none */
    int combine;        /* BAG's embeddings: 0 sum, 1 mean, 2 max; the wide part sums */
} sl_feature_info;
/* Gives the spec's feature i. */
SL_API SL_MUST_USE sl_status sl_ranker_get_feature(const sl_ranker *ranker, size_t i, sl_feature_info *out);

/* A weight, row-major: "wide" (wide_size, outputs), "bias" (outputs), "embedding.NAME" (size, dim), "dense.I.weight"
 * (in, out), "dense.I.bias" (out). */
typedef struct sl_tensor {
    const char *name;
    const float *data;
    size_t rows, columns; /* a vector has 1 row */
} sl_tensor;
/* A coded embedding is decoded at its first sl_ranker_get_tensor, and the floats are kept (SL_ENOMEM).
 * sl_ranker_with_tensors makes floats of a coded embedding that is given weights. It makes floats of a layer in INT8 or
 * bf16 that is given weights or biases. Others keep their codes. */
SL_API size_t sl_ranker_tensor_count(const sl_ranker *ranker);
SL_API SL_MUST_USE sl_status sl_ranker_get_tensor(const sl_ranker *ranker, size_t i, sl_tensor *out);
/* Copies base with other weights. Errors: SL_ENOTFOUND (a name), SL_EDIM (a shape), SL_EVALUE (not finite). */
SL_API SL_MUST_USE sl_status sl_ranker_with_tensors(const sl_ranker *base, const sl_tensor *tensors, size_t count,
                                                    sl_ranker **out);

/* How an embedding table is kept: as floats, or a row in codes of 8 or 4 bits with a scale and an offset. No table is
 * AUTO, which asks a search for the type. */
typedef enum sl_table_type { SL_TABLE_F32 = 0, SL_TABLE_I8 = 1, SL_TABLE_I4 = 2, SL_TABLE_AUTO = 3 } sl_table_type;
typedef struct sl_embedding_info {
    size_t struct_size;
    const char *tensor; /* "embedding.NAME" */
    sl_table_type type;
    size_t size, dim;
    size_t bytes; /* in memory and in a file */
} sl_embedding_info;
/* Gives embedding table i, below sl_ranker_info.embeddings. */
SL_API SL_MUST_USE sl_status sl_ranker_get_embedding(const sl_ranker *ranker, size_t i, sl_embedding_info *out);

/* ---- Quantisation of dense layers (docs/internals/precision.md; Jacob et al. 2018, arXiv 1712.05877) */

/* Numbers of a dense layer. Sums of INT8 are exact: a processor without VNNI gives the same bits.
 *   INT8           weights in s8 with a scale an output; inputs in u8 by a range that calibration found
 *   INT8_DYNAMIC   the same weights; inputs in u8 by the range of each row's own values
 *   BF16           weights and inputs rounded to bf16, sums of floats. Half the bytes; faster with avx512_bf16 */
typedef enum sl_precision {
    SL_PRECISION_F32 = 0,
    SL_PRECISION_INT8 = 1,
    SL_PRECISION_INT8_DYNAMIC = 2,
    SL_PRECISION_BF16 = 3
} sl_precision;

/* Range of a layer's inputs, and scales of its weights. All but MSE scale an output by its largest weight.
 *   MINMAX     all values
 *   QUANTILE   all values but a share
 *   ENTROPY    the least divergence of the codes' distribution from the values'
 *   MSE        the least squared error, of the weights too */
#define SL_CALIBRATION_MAP(X)                                                                                          \
    X(MINMAX, 0, "minmax")                                                                                             \
    X(QUANTILE, 1, "quantile")                                                                                         \
    X(ENTROPY, 2, "entropy")                                                                                           \
    X(MSE, 3, "mse")
typedef enum sl_calibration {
#define SL_X(name, number, text) SL_CALIBRATION_##name = number,
    SL_CALIBRATION_MAP(SL_X)
#undef SL_X
} sl_calibration;

typedef struct sl_layer_info {
    size_t struct_size;
    const char *name; /* "dense.I", owned by the ranker */
    size_t in, out;
    sl_precision precision;
    float scale; /* INT8: an input x has the code zero + x / scale, from 0 to 255; else 0 */
    int zero;
    float low, high;            /* what codes 0 and 255 stand for */
    const float *weight_scales; /* one an output, owned by the ranker; NULL: F32 and BF16 */
    size_t bytes;               /* of the layer in a file */
} sl_layer_info;
/* Gives dense layer i of sl_ranker_info.layers. Errors: SL_EINVAL (no such layer). */
SL_API SL_MUST_USE sl_status sl_ranker_get_layer(const sl_ranker *ranker, size_t i, sl_layer_info *out);

typedef struct sl_quantize_params {
    size_t struct_size;
    sl_precision precision;     /* of the layers; default SL_PRECISION_INT8 */
    const sl_precision *layers; /* one a layer, in place of `precision`; NULL */
    const char *const *keep;    /* names of layers that stay F32 */
    size_t keep_count;
    sl_calibration calibration; /* default SL_CALIBRATION_MSE */
    double quantile;            /* of QUANTILE: the share left out, from 0 to below 1; default 0.0001 */
    int symmetric;              /* nonzero: the middle code stands for 0. Default 0: any code may */
    int bias_correction;        /* nonzero (default): biases make up for the mean error of each output */
    sl_table_type tables; /* of all embedding tables; default SL_TABLE_F32: as they are. AUTO: the search's alone */
    size_t rows;          /* drawn to calibrate on; default 4096. Memory holds all layers' inputs of them */
    uint64_t seed;        /* of the draw */
    sl_lookup_fn lookup;
    void *lookup_ctx;
    const sl_allocator *allocator;
} sl_quantize_params;
SL_API void sl_quantize_params_init_sized(sl_quantize_params *params, size_t struct_size);
#define sl_quantize_params_init(params) sl_quantize_params_init_sized((params), sizeof *(params))

/* Makes a model whose dense layers are in INT8 or BF16. Labels of the rows are not read. The source is read twice. rows
 * may be NULL if no layer is INT8, and none is INT8_DYNAMIC with bias_correction.
 * Errors: SL_EINVAL (no deep part; a model quantised already; nothing to quantise; no rows; a layer whose inputs are
 * all 0), SL_ENOTFOUND (a layer's name), SL_EVALUE (a layer of more than 65,793 inputs, or whose inputs are not finite;
 * weights and inputs whose sums are no floats), as of encoding. */
SL_API SL_MUST_USE sl_status sl_ranker_quantize(const sl_ranker *ranker, const sl_rows *rows,
                                                const sl_quantize_params *params, sl_ranker **out);

/* A dense layer in numbers that another tool found. F32 and BF16 take the base's weights, and read nothing else. */
typedef struct sl_quantized_layer {
    sl_precision precision;
    float scale; /* INT8: an input x has the code zero + x / scale, from 0 to 255 */
    int zero;
    const int8_t *codes;        /* INT8, INT8_DYNAMIC: (in, out); a weight is codes[i * out + o] * weight_scales[o] */
    const float *weight_scales; /* one an output */
} sl_quantized_layer;
/* Copies base, a model of floats, with such layers: count is sl_ranker_info.layers. Biases and all other weights stay
 * base's. Errors: SL_EINVAL (count; a model quantised already; all layers F32; a scale, a zero), SL_EVALUE (weights
 * beyond bf16). */
SL_API SL_MUST_USE sl_status sl_ranker_with_layers(const sl_ranker *base, const sl_quantized_layer *layers,
                                                   size_t count, sl_ranker **out);

/* A measure of accuracy: AUC and NDCG are better the higher, LOGLOSS and RMSE the lower. */
typedef enum sl_measure {
    SL_MEASURE_DEFAULT = 0, /* AUC under logistic loss, LOGLOSS under multi-class, RMSE under squared */
    SL_MEASURE_AUC = 1,
    SL_MEASURE_LOGLOSS = 2,
    SL_MEASURE_NDCG = 3, /* needs groups */
    SL_MEASURE_RMSE = 4
} sl_measure;

/* How choices are searched. EXHAUSTIVE and BAYESIAN try all calibrations for nets of up to 4 layers, 3 for 5 layers, 2
 * for up to 8, and MSE alone for 9. The other three begin with all layers in INT8, or in BF16 without INT8, and take
 * layers back to F32.
 *   EXHAUSTIVE       judges all choices of precision and calibration a layer, the fastest first; ends with proof
 *   ACCURACY_AWARE   takes back the layer that gains most, then judges anew, as OpenVINO's tool of that name
 *   BASIC            takes back one layer alone, then several, as Neural Compressor does
 *   MSE              takes back the layers of the largest squared error first
 *   BAYESIAN         judges the choice of the largest expected improvement by a Gaussian process (Gardner et al. 2014);
 *                    the seed is that of `quantize` */
typedef enum sl_strategy {
    SL_STRATEGY_EXHAUSTIVE = 0,
    SL_STRATEGY_ACCURACY_AWARE = 1,
    SL_STRATEGY_BASIC = 2,
    SL_STRATEGY_MSE = 3,
    SL_STRATEGY_BAYESIAN = 4
} sl_strategy;

/* One choice as it was judged. Arrays have an entry a layer and last for the call. */
typedef struct sl_trial {
    size_t struct_size;
    size_t number; /* from 1 */
    size_t layers;
    const sl_precision *precisions;
    const sl_calibration *calibrations; /* of INT8 layers; NULL: they were trained */
    double value, drop;                 /* the measure, and how much worse than F32 it is */
    double cost;                        /* modelled time of the dense layers over that of F32 */
    int within;                         /* nonzero: drop is at most max_drop */
    double error;                       /* root mean squared difference of logits from F32's; NaN under training */
    sl_table_type tables;               /* of all embedding tables */
} sl_trial;
typedef void (*sl_trial_fn)(void *ctx, const sl_trial *trial);

typedef struct sl_precision_search_params {
    size_t struct_size;
    const sl_quantize_params *quantize; /* keep, symmetric, quantile, bias_correction, tables, rows, seed, lookup,
                                           allocator. Its calibration is that of ACCURACY_AWARE, BASIC and MSE, and
                                           scales the weights of INT8_DYNAMIC layers. Tables AUTO: of every type,
                                           I4 where costs are equal. NULL: defaults, but tables AUTO */
    double max_drop;                    /* default 0.0005 */
    int relative;                       /* nonzero: max_drop is a share of the measure of F32 */
    sl_measure measure;
    const char *group; /* column of the groups */
    size_t ndcg_k;     /* default 10 */
    sl_strategy strategy;
    int leave_static, leave_dynamic; /* nonzero: no layer is INT8, or none is INT8_DYNAMIC. The search then reads only
                                        the rows and weights that the other precisions need */
    size_t trials;     /* at most. 0 (default): no limit, but 100 of BAYESIAN, which takes 1,000 at most. EXHAUSTIVE
                          judges all calibrations of the precisions it has begun */
    double timeout_s;  /* no trial but the first begins later; 0 (default): none */
    size_t threads;    /* 0 (default): all */
    sl_trial_fn trial; /* called after each, on the calling thread */
    void *trial_ctx;
    sl_progress_fn progress; /* in trials; the total is not known ahead, and is 0 */
    void *progress_ctx;
    int leave_bf16; /* nonzero: no layer is BF16 */
    /* Not NULL: judges one choice, which trains. The ranker trains on, on `rows`, as by sl_ranker_train with layers in
     * INT8, by its own spec. The call reads keep, tables, lookup and allocator of `quantize`. It reads no strategy,
     * trials or progress. The training's init is NULL. Its teacher may be the ranker itself. Default: NULL */
    const sl_train_params *training;
} sl_precision_search_params;
SL_API void sl_precision_search_params_init_sized(sl_precision_search_params *params, size_t struct_size);
#define sl_precision_search_params_init(params) sl_precision_search_params_init_sized((params), sizeof *(params))

typedef struct sl_precision_search_report {
    size_t struct_size;
    size_t trials;
    size_t rows;       /* measured on */
    double base_value; /* of F32 */
    double value, drop;
    double drop_error; /* standard error of drop, by the grouped jackknife; NaN: too few rows or groups */
    double cost;
    int within;        /* nonzero: the model is within the bound and faster than F32 */
    int proved;        /* nonzero: every choice of a lower cost was judged, and none is within the bound */
    size_t blame;      /* layer whose codes alone cost most; SIZE_MAX where within, or with `training` */
    double blame_drop; /* what they cost */
    double seconds;
    sl_table_type tables; /* of the model made */
} sl_precision_search_report;

/* Finds the fastest precisions within an accuracy bound. With eval NULL, accuracy is measured on `rows`. If no choice
 * is within the bound, *out is the one of the least drop, and report->within is 0. Errors: those of sl_ranker_quantize
 * and of reading labels; SL_EINVAL (max_drop; a measure that the loss or the rows lack, or of 0 with relative; no
 * choice faster than F32), SL_ECANCELED. */
SL_API SL_MUST_USE sl_status sl_ranker_search_precision(const sl_ranker *ranker, const sl_rows *rows,
                                                        const sl_rows *eval, const sl_precision_search_params *params,
                                                        sl_ranker **out, sl_precision_search_report *report);

typedef struct sl_encoded {
    size_t struct_size;
    size_t rows;
    const float *dense;        /* (rows, dense_width) */
    const uint32_t *ids;       /* (rows, id_count) */
    const uint32_t *bag_start; /* (rows * bag_count + 1): where each bag begins in bag_ids, row by row */
    const uint32_t *bag_ids;   /* NULL only if all empty */
} sl_encoded;

/* ---- Prediction */

/* Scratch of predictions, for one thread at a time. The ranker must outlive it. */
typedef struct sl_predictor sl_predictor;

typedef struct sl_predictor_params {
    size_t struct_size;
    size_t max_rows; /* at a time; default 512 */
    size_t threads;  /* default 1 */
    sl_lookup_fn lookup;
    void *lookup_ctx;
    const sl_allocator *allocator;
} sl_predictor_params;
SL_API void sl_predictor_params_init_sized(sl_predictor_params *params, size_t struct_size);
#define sl_predictor_params_init(params) sl_predictor_params_init_sized((params), sizeof *(params))

/* Forked from several threads, a child predicts on one. Errors: SL_EUNSUPPORTED (oneDNN refuses). */
SL_API SL_MUST_USE sl_status sl_predictor_create(const sl_ranker *ranker, const sl_predictor_params *params,
                                                 sl_predictor **out);
SL_API void sl_predictor_free(sl_predictor *predictor);

/* Predicts scores (rows, outputs): values under squared loss, else probabilities. Columns are found by name; others are
 * ignored. Last bits may depend on a call's rows. Allocates nothing once warm for as many rows and columns. */
SL_API SL_MUST_USE sl_status sl_predictor_predict(sl_predictor *predictor, const sl_table *table, float *scores);
/* The same for encoded rows, whose ids and bag_start are checked. */
SL_API SL_MUST_USE sl_status sl_predictor_predict_encoded(sl_predictor *predictor, const sl_encoded *rows,
                                                          float *scores);
/* Encodes up to max_rows rows, else SL_ELIMIT. *out points into the predictor until its next call. */
SL_API SL_MUST_USE sl_status sl_predictor_encode(sl_predictor *predictor, const sl_table *table, sl_encoded *out);

/* ---- Measures */

#define SL_DECILES 10u

/* Measures (docs/SPEC.md). A measure is NaN if it divides by 0, or if the loss lacks it:
 *   squared       logloss, accuracy, normalized_entropy, auc, group_auc
 *   multi-class   base_rate, calibration, auc, group_auc, ndcg */
typedef struct sl_metrics {
    size_t struct_size;
    size_t rows;
    double logloss;
    double auc;
    double accuracy;
    double rmse;
    double base_rate;
    double calibration;
    double normalized_entropy;
    double group_auc;
    double ndcg;
    size_t ndcg_k, groups;
    size_t decile_rows[SL_DECILES]; /* by rising score */
    double decile_score[SL_DECILES], decile_label[SL_DECILES];
    int ndcg_linear; /* gain of a row: 0: 2^label - 1; 1: the label */
} sl_metrics;

typedef struct sl_evaluate_params {
    size_t struct_size;
    size_t threads;
    const char *group; /* column of the groups */
    size_t ndcg_k;     /* default 10 */
    sl_lookup_fn lookup;
    void *lookup_ctx;
    const sl_allocator *allocator;
    sl_progress_fn progress; /* in rows */
    void *progress_ctx;
} sl_evaluate_params;
SL_API void sl_evaluate_params_init_sized(sl_evaluate_params *params, size_t struct_size);
#define sl_evaluate_params_init(params) sl_evaluate_params_init_sized((params), sizeof *(params))

/* Compares predictions with the rows' labels, weighted by the spec's column. Errors: SL_EVALUE (a label below 0 with
 * groups; weights that are all 0), SL_EINVAL (no rows). */
SL_API SL_MUST_USE sl_status sl_ranker_evaluate(const sl_ranker *ranker, const sl_rows *rows,
                                                const sl_evaluate_params *params, sl_metrics *out);

/* The same for any scores (n, outputs). labels (class numbers under multi-class loss), weights and groups have n
 * entries; the last two may be NULL. Weights that are all 0 make every mean NaN. Only ndcg_k and allocator of params
 * count. Errors: as above; SL_EVALUE (a label or score unfit for the loss, a negative weight). */
SL_API SL_MUST_USE sl_status sl_metrics_compute(sl_loss loss, size_t outputs, const float *scores, const float *labels,
                                                const float *weights, const uint64_t *groups, size_t n,
                                                const sl_evaluate_params *params, sl_metrics *out);

/* Measures lists of ids: NDCG@k (gain 1), recall@k, hit rate. Each is the mean over lists with a relevant id, else NaN,
 * and may be NULL. ids is (lists, k); SL_NO_ID ends a list early. Relevant to list i are relevant[start[i]] to
 * relevant[start[i + 1]]. */
SL_API SL_MUST_USE sl_status sl_list_metrics(const uint64_t *ids, size_t lists, size_t k, const uint64_t *relevant,
                                             const size_t *start, double *ndcg, double *recall, double *hit_rate);

/* ---- Items */

/* Item features by id. Readers never wait, and see an old row or a new one, whole. Handles are counted. */
typedef struct sl_items sl_items;

typedef struct sl_items_params {
    size_t struct_size;
    const char *id; /* column of the ids, integers or digits as text; default "id" */
    const sl_allocator *allocator;
    sl_progress_fn progress; /* in rows */
    void *progress_ctx;
    int exclusive; /* as of sl_open_params; wait_s too */
    double wait_s;
} sl_items_params;
SL_API void sl_items_params_init_sized(sl_items_params *params, size_t struct_size);
#define sl_items_params_init(params) sl_items_params_init_sized((params), sizeof *(params))

/* Makes a table. Columns keep the types of the first block, but ids may come as integers or as text in any block.
 * Errors: SL_EEXIST (an id twice), SL_ETYPE (an id that the id column's type cannot hold). */
SL_API SL_MUST_USE sl_status sl_items_create(const sl_rows *rows, const sl_items_params *params, sl_items **out);
/* Maps a saved table, whose file must not become shorter, and loads its ids alone. Values and texts are verified by
 * sl_items_check, saves and sl_recommender_params.verify. Errors: as of sl_index_open. */
SL_API SL_MUST_USE sl_status sl_items_open(const char *path, const sl_items_params *params, sl_items **out);
/* Writes the table as sl_index_save does, and verifies a mapped file first. */
SL_API SL_MUST_USE sl_status sl_items_save(const sl_items *items, const char *path, const sl_save_params *params);
SL_API void sl_items_free(sl_items *items);

typedef struct sl_items_check_report {
    size_t struct_size;
    size_t rows, columns;
    size_t sections_checked;
    uint64_t bytes_checked;
    size_t bad_ids; /* rows whose id differs from their id column */
} sl_items_check_report;

/* Verifies every byte of a mapped table's file, and its ids by their column. *report is filled on failure too, with
 * what was found sound. A table in memory, or updated to lie there, gives 0. Threads: safe beside
 * readers and updates. */
SL_API SL_MUST_USE sl_status sl_items_check(const sl_items *items, const sl_file_check_params *params,
                                            sl_items_check_report *report);

/* Replaces rows by id and adds new ones, all or nothing. Columns that rows lacks are missing values. Tell recommenders
 * by sl_recommender_update. Errors: SL_ENOTFOUND (a column the table lacks), SL_EEXIST, SL_ELIMIT (2^32 - 1 updates:
 * save and reopen the table). */
SL_API SL_MUST_USE sl_status sl_items_update(sl_items *items, const sl_table *rows);
SL_API size_t sl_items_size(const sl_items *items);
/* Column i's name, in the source's order, owned by the table. NULL behind the last. */
SL_API const char *sl_items_column_name(const sl_items *items, size_t i);
/* Writes a value as text ("12", "0.5", "a|b"), cut to size - 1 bytes and a NUL; *length is the whole text's. */
SL_API SL_MUST_USE sl_status sl_items_text(const sl_items *items, uint64_t id, const char *column, char *out,
                                           size_t size, size_t *length);

/* ---- Serving */

/* An index, a ranker and an item table that serve requests. The index must outlive it. Threads: any number, each with
 * its own session, or by the batch call. One more swaps or updates; no request waits. */
typedef struct sl_recommender sl_recommender;

/* Computed ahead for each item. */
typedef enum sl_item_part {
    SL_ITEM_LAYER = 0,      /* its first layer and wide sum: first_width + outputs floats */
    SL_ITEM_CODES = 1,      /* encoded features: less memory, slower requests */
    SL_ITEM_LAYER_BF16 = 2, /* SL_ITEM_LAYER with the first layer's part in bf16: half the memory */
    SL_ITEM_LAYER_I8 = 3    /* with that part in signed bytes and a scale an item: a quarter of the memory */
} sl_item_part;

typedef struct sl_recommender_params {
    size_t struct_size;
    sl_item_part item_part; /* default SL_ITEM_LAYER */
    size_t threads;         /* of preparing items */
    float missing_score;    /* of candidates the table lacks; NaN (default): all features are missing */
    const char *group;      /* column of max_per_group */
    const sl_allocator *allocator;
    sl_log_fn log;
    void *log_ctx;
    int verify; /* nonzero: reads and verifies a mapped file whole before first preparing it, also by swaps */
} sl_recommender_params;
SL_API void sl_recommender_params_init_sized(sl_recommender_params *params, size_t struct_size);
#define sl_recommender_params_init(params) sl_recommender_params_init_sized((params), sizeof *(params))

/* Makes a recommender. ranker NULL: recall alone. items NULL: a ranker without item columns. Errors: SL_EINVAL (a
 * ranker of several classes), SL_EDIM (a vector feature's dim is not the index's), SL_EUNSUPPORTED (a feature is the
 * item's vector in the index, and the index was made with sl_index_params.multi). */
SL_API SL_MUST_USE sl_status sl_recommender_create(sl_index *index, sl_ranker *ranker, sl_items *items,
                                                   const sl_recommender_params *params, sl_recommender **out);
/* Free its sessions first. */
SL_API void sl_recommender_free(sl_recommender *recommender);

/* Prepares another model or table (NULL: the one in use), then puts both in use at once. A request sees the old pair or
 * the new one. On failure the old pair stays, else this or a later swap frees it. Errors: as above; SL_EBUSY (another
 * thread swaps or updates). */
SL_API SL_MUST_USE sl_status sl_recommender_swap(sl_recommender *recommender, sl_ranker *ranker, sl_items *items);
/* Updates the table in use as sl_items_update does, and what was computed ahead. SL_EINVAL: there is none. SL_EBUSY: as
 * above. */
SL_API SL_MUST_USE sl_status sl_recommender_update(sl_recommender *recommender, const sl_table *rows);
/* Number of swaps. */
SL_API uint64_t sl_recommender_version(const sl_recommender *recommender);
/* Bytes of what was computed ahead for the items in use, with rows that updates have replaced since. Threads: any. */
SL_API size_t sl_recommender_item_bytes(const sl_recommender *recommender);

typedef struct sl_request {
    size_t struct_size;
    const void *vector; /* of the index's dimension */
    sl_dtype dtype;
    const sl_table *user; /* NULL: the model has no user features */
    size_t user_row;
    const uint64_t *exclude;
    size_t exclude_count;
    int (*accept)(void *ctx, uint64_t id); /* as in sl_search_params */
    void *accept_ctx;
    const uint64_t *accept_bits;
    size_t accept_bits_count;
    const sl_filter *filter; /* of the recommender's index; NULL: all. With the others, all must agree. min(candidates,
                                allowed) candidates are found */
} sl_request;

typedef struct sl_recommend_params {
    size_t struct_size;
    size_t n;             /* items returned; default 10 */
    size_t candidates;    /* recalled and scored, at least n; default 500 */
    size_t ef;            /* default 0: candidates, at least 64 */
    size_t max_per_group; /* 0: no bound */
    size_t threads;       /* of the batch call; default 1 */
    sl_progress_fn progress;
    void *progress_ctx;
} sl_recommend_params;
SL_API void sl_recommend_params_init_sized(sl_recommend_params *params, size_t struct_size);
#define sl_recommend_params_init(params) sl_recommend_params_init_sized((params), sizeof *(params))

typedef struct sl_recommend_stats {
    size_t requests, results, candidates;
    size_t without_features;
    uint64_t version; /* of the pair; a batch's largest */
} sl_recommend_stats;

/* Scratch of one thread's requests, up to the n, candidates and ef of its params. */
typedef struct sl_session sl_session;

SL_API SL_MUST_USE sl_status sl_session_create(sl_recommender *recommender, const sl_recommend_params *params,
                                               sl_session **out);
SL_API void sl_session_free(sl_session *session);

/* Gives the top n of one request, best first, equal scores by recall. ids, scores and recall_scores have n entries,
 * filled up with SL_NO_ID and NaN; the last two may be NULL. Without a ranker scores are the recall's. Allocates
 * nothing once warm for the model in use. Errors: a search's too. */
SL_API SL_MUST_USE sl_status sl_session_recommend(sl_session *session, const sl_request *request,
                                                  const sl_recommend_params *params, uint64_t *ids, float *scores,
                                                  float *recall_scores, sl_recommend_stats *stats);
/* Scores count candidates, in order. recall_scores NULL: computed if the model asks, of an id's best vector. */
SL_API SL_MUST_USE sl_status sl_session_score(sl_session *session, const sl_request *request, const uint64_t *ids,
                                              const float *recall_scores, size_t count, float *scores,
                                              sl_recommend_stats *stats);
/* The same for many requests. Outputs are (request_count, n). */
SL_API SL_MUST_USE sl_status sl_recommend(sl_recommender *recommender, const sl_request *requests, size_t request_count,
                                          const sl_recommend_params *params, uint64_t *ids, float *scores,
                                          float *recall_scores, sl_recommend_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
