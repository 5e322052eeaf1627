/* Shortlist: ranking by a wide & deep model (arXiv 1606.07792). The conventions of <shortlist.h> hold. docs/CALLS.md
   has costs, methods and details.

   Caveats
     - Rows: NaN and empty TEXT are missing values. Sources are read several times.
     - Training keeps all rows in memory. A deep part needs oneDNN.
     - A quantised model cannot be trained or quantised again.
     - Rankers and item tables count their handles: free yours at any time. An index must outlive its recommenders, a
       recommender its sessions, a ranker its predictors.
     - fork(): a child predicts on one thread if its parent used several.

   Errors that entries do not repeat
     - rows: SL_ENOTFOUND (a column or id is missing), SL_ETYPE (of a column), SL_EVALUE (names row, or line and
       column), SL_ELIMIT (above 16,384 columns, 2^31 - 1 items, 2^32 - 1 values in bags), those of the source
     - files: SL_EIO, SL_EFORMAT, SL_EVERSION, SL_ECORRUPT (names the first fault)
     - items: SL_EBUSY (in a child of fork(), if another thread of its parent changed them) */
#ifndef SHORTLIST_RANK_H
#define SHORTLIST_RANK_H

#include <shortlist.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Rows */

/* Laid out as in Apache Arrow: Arrow and NumPy columns need no copy. */
typedef enum sl_column_type {
    SL_COLUMN_F32 = 0,
    SL_COLUMN_F64 = 1,
    SL_COLUMN_I32 = 2,
    SL_COLUMN_I64 = 3,
    SL_COLUMN_TEXT = 4,  /* UTF-8; row r is bytes offsets[r] to offsets[r + 1] */
    SL_COLUMN_TEXTS = 5, /* row r is texts lists[r] to lists[r + 1] */
    SL_COLUMN_VECTOR = 6 /* float[rows][dim] */
} sl_column_type;

typedef struct sl_column {
    const char *name;
    sl_column_type type;
    size_t dim;
    const void *values;
    const int64_t *offsets;
    const int64_t *lists;
    const uint8_t *valid; /* bit r % 8 of byte r / 8; NULL: no row is missing */
} sl_column;

/* A block of rows. */
typedef struct sl_table {
    size_t struct_size;
    size_t rows;
    size_t column_count;
    const sl_column *columns;
    /* For messages: file; line of each row, or NULL; number of rows before. */
    const char *origin;
    const uint64_t *lines;
    uint64_t first_row;
} sl_table;

/* A source of rows. next gives 1 to max_rows rows, valid until the next call, or 0 at the end. Both return a status,
   and leave a failing library call's message. Threads: one at a time. */
typedef struct sl_rows {
    size_t struct_size;
    void *ctx;
    sl_status (*next)(void *ctx, size_t max_rows, sl_table *block);
    sl_status (*rewind)(void *ctx);
} sl_rows;

/* A CSV file (docs/SPEC.md) of TEXT columns. A row may have 16 MB. */
typedef struct sl_csv sl_csv;

typedef struct sl_csv_params {
    size_t struct_size;
    char delimiter;           /* default ',' */
    int header;               /* nonzero (default): the first line names the columns */
    const char *const *names; /* replace the header's */
    size_t name_count;
    const char *spec; /* its "csv" replaces these */
    const sl_allocator *allocator;
} sl_csv_params;

SL_API void sl_csv_params_init_sized(sl_csv_params *params, size_t struct_size);
#define sl_csv_params_init(params) sl_csv_params_init_sized((params), sizeof *(params))

/* Opens path and reads its header. Errors: SL_EFORMAT (no header, a name twice). */
SL_API SL_MUST_USE sl_status sl_csv_open(const char *path, const sl_csv_params *params, sl_csv **out);
SL_API void sl_csv_free(sl_csv *csv);
/* Gives the file as a source; csv must outlive it. Errors: SL_EFORMAT (a wrong number of fields, an open quote). */
SL_API SL_MUST_USE sl_status sl_csv_rows(sl_csv *csv, sl_rows *out);

typedef struct sl_table_cursor {
    const sl_table *table;
    size_t at;
    sl_column columns[1]; /* private */
} sl_table_cursor;

SL_API size_t sl_table_cursor_size(size_t column_count);
/* Gives a table as a source; table and cursor must outlive it. cursor has sl_table_cursor_size(table->column_count)
   bytes, aligned as by malloc, and becomes out->ctx. */
SL_API SL_MUST_USE sl_status sl_table_rows(const sl_table *table, sl_table_cursor *cursor, sl_rows *out);

/* ---- Ranker */

/* A model; it never changes. Threads: any number. */
typedef struct sl_ranker sl_ranker;

typedef enum sl_loss { SL_LOSS_LOGISTIC = 0, SL_LOSS_MULTICLASS = 1, SL_LOSS_SQUARED = 2 } sl_loss;

typedef struct sl_epoch {
    size_t epoch; /* from 1 */
    double train_loss;
    double valid_loss; /* NaN without validation rows */
    double valid_auc;  /* NaN except under logistic loss */
    double seconds;
    size_t rows;
    int best;
} sl_epoch;
typedef void (*sl_epoch_fn)(void *ctx, const sl_epoch *epoch);

/* Writes an id's vector to out, for a vector feature given by ids. Its failures are passed on. Threads: any. */
typedef sl_status (*sl_lookup_fn)(void *ctx, const char *feature, uint64_t id, float *out, size_t dim);

/* Type that the deep part multiplies in training; all else is f32. DEFAULT is f32, or with resume the
   checkpoint's. */
typedef enum sl_train_precision {
    SL_TRAIN_DEFAULT = 0,
    SL_TRAIN_F32 = 1,
    SL_TRAIN_BF16 = 2,
    SL_TRAIN_FP16 = 3,
    SL_TRAIN_AUTO = 4
} sl_train_precision;

/* Dense layers in training. INT8: quantisation-aware training (arXiv 1712.05877) makes a quantised model. */
typedef enum sl_train_layers { SL_TRAIN_LAYERS_F32 = 0, SL_TRAIN_LAYERS_INT8 = 1 } sl_train_layers;

/* In INT8, ranges of inputs and scales of weights are observed, or learned (arXiv 1902.08153). */
typedef enum sl_train_ranges { SL_TRAIN_RANGES_OBSERVED = 0, SL_TRAIN_RANGES_LEARNED = 1 } sl_train_ranges;

typedef struct sl_train_params {
    size_t struct_size;
    size_t threads;
    const char *checkpoint;  /* file of the training's state, written atomically */
    size_t checkpoint_steps; /* mini-batches between checkpoints in an epoch; 0: none */
    int resume;              /* nonzero: goes on from checkpoint, if any; as if uninterrupted on as many threads */
    size_t epochs;           /* 0: the spec's; seed likewise */
    uint64_t seed;
    sl_lookup_fn lookup;
    void *lookup_ctx;
    sl_epoch_fn epoch;
    void *epoch_ctx;
    const sl_allocator *allocator;
    sl_log_fn log;
    void *log_ctx;
    sl_progress_fn progress;
    void *progress_ctx;
    sl_train_precision precision;
    double loss_scale;        /* FP16: 1 to 2^24; 0: adapts */
    const sl_ranker *init;    /* starts from its features and weights */
    const sl_ranker *teacher; /* to distil (arXiv 1503.02531); NULL: labels alone */
    double temperature;       /* of the soft loss: 0.001 to 1000, default 2 */
    double soft;              /* share of the soft loss, 0 to 1, default 0.7; at 1 rows need no labels */
    double rate_scale;        /* of the spec's rates; default 1 */
    sl_train_layers layers;   /* INT8: precision is F32 */
    sl_train_ranges ranges;   /* of INT8 */
    const char *const *keep;  /* layers that stay F32, "dense.I" */
    size_t keep_count;
} sl_train_params;

SL_API const char *sl_train_precision_name(sl_train_precision precision);
SL_API void sl_train_params_init_sized(sl_train_params *params, size_t struct_size);
#define sl_train_params_init(params) sl_train_params_init_sized((params), sizeof *(params))

typedef struct sl_train_report {
    size_t struct_size;
    size_t rows, valid_rows;
    size_t epochs, best_epoch;
    double train_loss, valid_loss, valid_auc; /* of the best epoch */
    double read_s;
    double epoch_s, rows_per_s;
    size_t wide_nonzero;
    sl_train_precision precision;
    int emulated;
    double loss_scale;
    size_t skipped_steps;
    sl_train_layers layers;
    sl_train_ranges ranges;
} sl_train_report;

/* Trains a model.
     spec   JSON text (docs/SPEC.md); NULL: init's. "label", "features" and layers must be init's
     train  read twice, with a teacher three times
     valid  NULL: the spec's share of train
   A teacher must have the same loss and classes. Layers switch to INT8 after a tenth of the steps, with init at once.
   Errors: SL_EINVAL (the spec, by its key; fewer than 2 rows; precision, loss_scale; INT8: no deep part, every layer
   kept, all inputs of a layer 0), SL_EVALUE (one class alone; a loss not finite, or gradients that always overflow: the
   last good checkpoint stays; INT8: inputs not finite), SL_ELIMIT (a vocabulary), SL_ENOTFOUND (a layer's name),
   SL_EUNSUPPORTED, the checkpoint's, SL_EFORMAT (a checkpoint of another training or precision). */
SL_API SL_MUST_USE sl_status sl_ranker_train(const char *spec, const sl_rows *train, const sl_rows *valid,
                                             const sl_train_params *params, sl_ranker **out, sl_train_report *report);

/* Makes an untrained model: fits features, draws weights. One row or class is enough. Only seed, lookup and allocator
   of params count. Errors: as above, but for oneDNN, loss and checkpoint. */
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
    const sl_allocator *allocator;
    sl_progress_fn progress;
    void *progress_ctx;
} sl_file_check_params;
SL_API void sl_file_check_params_init_sized(sl_file_check_params *params, size_t struct_size);
#define sl_file_check_params_init(params) sl_file_check_params_init_sized((params), sizeof *(params))

typedef struct sl_ranker_check_report {
    size_t struct_size;
    size_t features, parameters;
    size_t sections_checked;
    uint64_t bytes_checked;
    int checkpoint;
} sl_ranker_check_report;

/* Verifies every byte of a model's file, and all that opening and resuming require. On failure *report has what is
   sound. */
SL_API SL_MUST_USE sl_status sl_ranker_check(const char *path, const sl_file_check_params *params,
                                             sl_ranker_check_report *report);

typedef struct sl_ranker_info {
    size_t struct_size;
    sl_loss loss;
    size_t outputs;
    size_t features;
    size_t dense_width;
    size_t id_count;
    size_t bag_count;
    size_t deep_inputs;
    size_t layers;
    size_t first_width;
    size_t wide_size;
    size_t parameters;
    size_t bytes;
    const char *spec;
    int uses_onednn;
    size_t embeddings;
    size_t multiply_adds;
    size_t dense_zeros;
} sl_ranker_info;
SL_API SL_MUST_USE sl_status sl_ranker_get_info(const sl_ranker *ranker, sl_ranker_info *out);
/* Output i's label ("" for regression), owned by the ranker. NULL: out of range. */
SL_API const char *sl_ranker_class(const sl_ranker *ranker, size_t i);

/* How an embedding table is kept: floats, or codes with a scale and offset per row. AUTO: a search chooses. */
typedef enum sl_table_type { SL_TABLE_F32 = 0, SL_TABLE_I8 = 1, SL_TABLE_I4 = 2, SL_TABLE_AUTO = 3 } sl_table_type;
typedef struct sl_embedding_info {
    size_t struct_size;
    const char *tensor;
    sl_table_type type;
    size_t size, dim;
    size_t bytes;
} sl_embedding_info;
SL_API SL_MUST_USE sl_status sl_ranker_get_embedding(const sl_ranker *ranker, size_t i, sl_embedding_info *out);

/* ---- Quantisation of dense layers (docs/internals/precision.md) */

/* Numbers of a dense layer. INT8 gives the same bits on any processor.
     INT8          weights in s8, one scale per output; inputs in u8 over a calibrated range
     INT8_DYNAMIC  inputs over the range of each row's values
     BF16          weights and inputs in bf16, summed as floats */
typedef enum sl_precision {
    SL_PRECISION_F32 = 0,
    SL_PRECISION_INT8 = 1,
    SL_PRECISION_INT8_DYNAMIC = 2,
    SL_PRECISION_BF16 = 3
} sl_precision;

/* Range of a layer's inputs. MINMAX: all values; QUANTILE: all but a share; ENTROPY: the least divergence of
   distributions; MSE: the least squared error (of weights too). */
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
    float scale; /* INT8: x has the code zero + x / scale, from 0 to 255; else 0 */
    int zero;
    float low, high;            /* inputs of codes 0 and 255 */
    const float *weight_scales; /* one per output, owned by the ranker; NULL: F32 and BF16 */
    size_t bytes;
} sl_layer_info;
/* Gives dense layer i. */
SL_API SL_MUST_USE sl_status sl_ranker_get_layer(const sl_ranker *ranker, size_t i, sl_layer_info *out);

typedef struct sl_quantize_params {
    size_t struct_size;
    sl_precision precision;     /* default INT8 */
    const sl_precision *layers; /* one per layer, instead of `precision` */
    const char *const *keep;    /* layers that stay F32 */
    size_t keep_count;
    sl_calibration calibration; /* default MSE */
    double quantile;            /* share left out, from 0 to below 1; default 0.0001 */
    int symmetric;              /* nonzero: the middle code is 0 */
    int bias_correction;        /* nonzero (default): biases cancel outputs' mean errors */
    sl_table_type tables;       /* of all embeddings; default F32: unchanged; AUTO: for a search */
    size_t rows;                /* to calibrate on; default 4096 */
    uint64_t seed;              /* draws these rows */
    sl_lookup_fn lookup;
    void *lookup_ctx;
    const sl_allocator *allocator;
} sl_quantize_params;
SL_API void sl_quantize_params_init_sized(sl_quantize_params *params, size_t struct_size);
#define sl_quantize_params_init(params) sl_quantize_params_init_sized((params), sizeof *(params))

/* Makes a model of INT8 or BF16 layers. Reads rows twice, needs no labels. rows may be NULL if no layer is INT8, nor
   INT8_DYNAMIC with bias_correction. Errors: SL_EINVAL (no deep part; a model quantised already; nothing to quantise;
   no rows; a layer whose inputs are all 0), SL_ENOTFOUND (a layer's name), SL_EVALUE (a layer of over 65,793 inputs;
   inputs or sums not finite), as of encoding. */
SL_API SL_MUST_USE sl_status sl_ranker_quantize(const sl_ranker *ranker, const sl_rows *rows,
                                                const sl_quantize_params *params, sl_ranker **out);

typedef struct sl_encoded {
    size_t struct_size;
    size_t rows;
    const float *dense;        /* (rows, dense_width) */
    const uint32_t *ids;       /* (rows, id_count) */
    const uint32_t *bag_start; /* (rows * bag_count + 1): where bags begin in bag_ids, row by row */
    const uint32_t *bag_ids;   /* NULL only if all are empty */
} sl_encoded;

/* ---- Prediction */

/* Scratch of predictions, for one thread at a time. */
typedef struct sl_predictor sl_predictor;

typedef struct sl_predictor_params {
    size_t struct_size;
    size_t max_rows; /* default 512 */
    size_t threads;  /* default 1 */
    sl_lookup_fn lookup;
    void *lookup_ctx;
    const sl_allocator *allocator;
} sl_predictor_params;
SL_API void sl_predictor_params_init_sized(sl_predictor_params *params, size_t struct_size);
#define sl_predictor_params_init(params) sl_predictor_params_init_sized((params), sizeof *(params))

/* Errors: SL_EUNSUPPORTED (oneDNN refuses). */
SL_API SL_MUST_USE sl_status sl_predictor_create(const sl_ranker *ranker, const sl_predictor_params *params,
                                                 sl_predictor **out);
SL_API void sl_predictor_free(sl_predictor *predictor);

/* Predicts scores (rows, outputs): values under squared loss, else probabilities. Finds columns by name and ignores
   others. Last bits may depend on the call's other rows. Allocates nothing once warm. */
SL_API SL_MUST_USE sl_status sl_predictor_predict(sl_predictor *predictor, const sl_table *table, float *scores);
/* The same for encoded rows, whose ids and bag_start are checked. */
SL_API SL_MUST_USE sl_status sl_predictor_predict_encoded(sl_predictor *predictor, const sl_encoded *rows,
                                                          float *scores);
/* Encodes up to max_rows rows; more are SL_ELIMIT. *out points into the predictor until its next call. */
SL_API SL_MUST_USE sl_status sl_predictor_encode(sl_predictor *predictor, const sl_table *table, sl_encoded *out);

/* ---- Measures */

#define SL_DECILES 10u

/* Measures (docs/SPEC.md); NaN if the loss lacks one, or it divides by 0. */
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
    int ndcg_linear; /* gain: 0: 2^label - 1; 1: the label */
} sl_metrics;

typedef struct sl_evaluate_params {
    size_t struct_size;
    size_t threads;
    const char *group; /* column of groups */
    size_t ndcg_k;     /* default 10 */
    sl_lookup_fn lookup;
    void *lookup_ctx;
    const sl_allocator *allocator;
    sl_progress_fn progress;
    void *progress_ctx;
} sl_evaluate_params;
SL_API void sl_evaluate_params_init_sized(sl_evaluate_params *params, size_t struct_size);
#define sl_evaluate_params_init(params) sl_evaluate_params_init_sized((params), sizeof *(params))

/* Compares predictions with the rows' labels. The spec names the column of weights. Errors: SL_EVALUE (a label below 0
   with groups; weights all 0), SL_EINVAL (no rows). */
SL_API SL_MUST_USE sl_status sl_ranker_evaluate(const sl_ranker *ranker, const sl_rows *rows,
                                                const sl_evaluate_params *params, sl_metrics *out);

/* The same for scores (n, outputs). labels (class numbers under multi-class loss), weights and groups have n entries;
   the last two may be NULL. Weights all 0 make means NaN. Only ndcg_k and allocator count. Errors: as above; SL_EVALUE
   (a label or score unfit for the loss, a negative weight). */
SL_API SL_MUST_USE sl_status sl_metrics_compute(sl_loss loss, size_t outputs, const float *scores, const float *labels,
                                                const float *weights, const uint64_t *groups, size_t n,
                                                const sl_evaluate_params *params, sl_metrics *out);

/* Measures lists of ids: NDCG@k (gain 1), recall@k, hit rate. Each is a mean over lists with a relevant id, else NaN,
   and may be NULL. ids is (lists, k); SL_NO_ID ends a list early. List i's relevant ids are relevant[start[i]] to
   relevant[start[i + 1] - 1]. */
SL_API SL_MUST_USE sl_status sl_list_metrics(const uint64_t *ids, size_t lists, size_t k, const uint64_t *relevant,
                                             const size_t *start, double *ndcg, double *recall, double *hit_rate);

/* ---- Items */

/* Item features by id. Readers never wait. They see a row whole, old or new. Changes wait for one another. */
typedef struct sl_items sl_items;

typedef struct sl_items_params {
    size_t struct_size;
    const char *id; /* column of the ids, integers or digits; default "id" */
    const sl_allocator *allocator;
    sl_progress_fn progress;
    void *progress_ctx;
    int exclusive; /* as of sl_open_params */
    double wait_s;
} sl_items_params;
SL_API void sl_items_params_init_sized(sl_items_params *params, size_t struct_size);
#define sl_items_params_init(params) sl_items_params_init_sized((params), sizeof *(params))

/* Makes a table. Columns keep the types of the first block; any block's ids may be integers or text. Errors: SL_EEXIST
   (an id twice), SL_ETYPE (the id column's type cannot hold an id). */
SL_API SL_MUST_USE sl_status sl_items_create(const sl_rows *rows, const sl_items_params *params, sl_items **out);
/* Maps a saved table, and loads only its ids. Errors: as of sl_index_open. */
SL_API SL_MUST_USE sl_status sl_items_open(const char *path, const sl_items_params *params, sl_items **out);
/* Writes the table as sl_index_save does; verifies a mapped file first. */
SL_API SL_MUST_USE sl_status sl_items_save(const sl_items *items, const char *path, const sl_save_params *params);
SL_API void sl_items_free(sl_items *items);

typedef struct sl_items_check_report {
    size_t struct_size;
    size_t rows, columns;
    size_t sections_checked;
    uint64_t bytes_checked;
    size_t bad_ids;
} sl_items_check_report;

/* Verifies every byte of a mapped table's file, and its ids. On failure *report has what is sound; 0 for a table in
   memory. Threads: readers and updates may go on. */
SL_API SL_MUST_USE sl_status sl_items_check(const sl_items *items, const sl_file_check_params *params,
                                            sl_items_check_report *report);

/* Replaces rows by id and adds new ones. Columns that rows lacks are missing values. Recommenders follow changes of the
   table only by sl_recommender_update or a swap. Errors: SL_ENOTFOUND (a column the table lacks), SL_EEXIST, SL_ELIMIT
   (2^32 - 1 updates: save and reopen). */
SL_API SL_MUST_USE sl_status sl_items_update(sl_items *items, const sl_table *rows);
/* Sets the columns that rows has, and leaves the items' others. Errors: also SL_ENOTFOUND (an id). */
SL_API SL_MUST_USE sl_status sl_items_set(sl_items *items, const sl_table *rows);
/* Deletes n ids. Recommenders then leave them out, until an update adds them. Errors: SL_ENOTFOUND (an id absent, or
   given twice). */
SL_API SL_MUST_USE sl_status sl_items_delete(sl_items *items, const uint64_t *ids, size_t n);
SL_API size_t sl_items_size(const sl_items *items);
/* Column i's name, owned by the table. NULL after the last. */
SL_API const char *sl_items_column_name(const sl_items *items, size_t i);
/* Writes a value as text ("12", "0.5", "a|b"), cut to size - 1 bytes and a NUL. *length is that of the whole text. */
SL_API SL_MUST_USE sl_status sl_items_text(const sl_items *items, uint64_t id, const char *column, char *out,
                                           size_t size, size_t *length);

/* ---- Serving */

/* An index, a ranker and an item table that serve requests. Requests follow the index. Threads: any number, by the
   batch call or with a session each. Swaps and updates wait for one another, and no request waits. */
typedef struct sl_recommender sl_recommender;

typedef enum sl_item_part {
    SL_ITEM_LAYER = 0, /* first layer and wide sum, floats */
    SL_ITEM_CODES = 1, /* encoded features */
    SL_ITEM_LAYER_BF16 = 2,
    SL_ITEM_LAYER_I8 = 3
} sl_item_part;

typedef struct sl_recommender_params {
    size_t struct_size;
    sl_item_part item_part;
    size_t threads;
    float missing_score; /* of candidates the table lacks; NaN (default): features are missing */
    const char *group;   /* column for max_per_group */
    const sl_allocator *allocator;
    sl_log_fn log;
    void *log_ctx;
    int verify; /* nonzero: verifies a mapped file first */
} sl_recommender_params;
SL_API void sl_recommender_params_init_sized(sl_recommender_params *params, size_t struct_size);
#define sl_recommender_params_init(params) sl_recommender_params_init_sized((params), sizeof *(params))

/* Makes a recommender. ranker NULL: recall alone. items NULL: a ranker without item columns. Errors: SL_EINVAL (a
   ranker of several classes), SL_EDIM (a vector feature's dim is not the index's), SL_EUNSUPPORTED (a feature is the
   item's vector in an index with multi). */
SL_API SL_MUST_USE sl_status sl_recommender_create(sl_index *index, sl_ranker *ranker, sl_items *items,
                                                   const sl_recommender_params *params, sl_recommender **out);
SL_API void sl_recommender_free(sl_recommender *recommender);

/* Prepares another model or table (NULL: the one in use), then puts both in use at once: a request sees the old pair or
   the new one. Errors: as above. */
SL_API SL_MUST_USE sl_status sl_recommender_swap(sl_recommender *recommender, sl_ranker *ranker, sl_items *items);
/* Change the table in use as sl_items_update, _set and _delete do, and what was computed ahead. Errors: SL_EINVAL (no
   table). */
SL_API SL_MUST_USE sl_status sl_recommender_update(sl_recommender *recommender, const sl_table *rows);
SL_API SL_MUST_USE sl_status sl_recommender_set(sl_recommender *recommender, const sl_table *rows);
SL_API SL_MUST_USE sl_status sl_recommender_delete(sl_recommender *recommender, const uint64_t *ids, size_t n);
/* Number of swaps. */
SL_API uint64_t sl_recommender_version(const sl_recommender *recommender);
/* Bytes computed ahead. Threads: any. */
SL_API size_t sl_recommender_item_bytes(const sl_recommender *recommender);

typedef struct sl_request {
    size_t struct_size;
    const void *vector; /* (dim) */
    sl_dtype dtype;
    const sl_table *user; /* NULL if the model has no user features */
    size_t user_row;
    const uint64_t *exclude;
    size_t exclude_count;
    int (*accept)(void *ctx, uint64_t id); /* as of sl_search_params */
    void *accept_ctx;
    const uint64_t *accept_bits;
    size_t accept_bits_count;
    const sl_filter *filter; /* of the recommender's index; an id must pass all given */
} sl_request;

typedef struct sl_recommend_params {
    size_t struct_size;
    size_t n;             /* items returned; default 10 */
    size_t candidates;    /* recalled and scored, at least n; default 500 */
    size_t ef;            /* 0 (default): candidates, at least 64 */
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
    uint64_t version; /* the largest in a batch */
} sl_recommend_stats;

/* Scratch of one thread's requests; they ask for at most its params' n, candidates and ef. */
typedef struct sl_session sl_session;

SL_API SL_MUST_USE sl_status sl_session_create(sl_recommender *recommender, const sl_recommend_params *params,
                                               sl_session **out);
SL_API void sl_session_free(sl_session *session);

/* Gives the top n of one request; equal scores rank by recall. ids, scores and recall_scores have n entries; the last
   two may be NULL. Without a ranker scores are the recall's. Allocates nothing once warm for the model in use. Errors:
   a search's too. */
SL_API SL_MUST_USE sl_status sl_session_recommend(sl_session *session, const sl_request *request,
                                                  const sl_recommend_params *params, uint64_t *ids, float *scores,
                                                  float *recall_scores, sl_recommend_stats *stats);
/* Scores count candidates, in order; NaN if deleted. recall_scores NULL: computed if the model uses them, for an id's
   best vector. */
SL_API SL_MUST_USE sl_status sl_session_score(sl_session *session, const sl_request *request, const uint64_t *ids,
                                              const float *recall_scores, size_t count, float *scores,
                                              sl_recommend_stats *stats);
/* The same for many requests. Outputs are (request_count, n). */
SL_API SL_MUST_USE sl_status sl_recommend(sl_recommender *recommender, const sl_request *requests, size_t request_count,
                                          const sl_recommend_params *params, uint64_t *ids, float *scores,
                                          float *recall_scores, sl_recommend_stats *stats);

/* ---- Experimental

   What follows may change or go in any version. So may layers, ranges and keep of sl_train_params, and the
   types of tables. */

/* Exchange with other formats. Outputs point into the ranker. */

typedef enum sl_feature_form { SL_FORM_DENSE = 0, SL_FORM_ID = 1, SL_FORM_BAG = 2 } sl_feature_form;
typedef enum sl_side { SL_SIDE_USER = 0, SL_SIDE_ITEM = 1, SL_SIDE_PAIR = 2 } sl_side;
typedef struct sl_feature_info {
    size_t struct_size;
    const char *name;
    sl_feature_form form;
    sl_side side;
    size_t at;
    size_t width;
    size_t size;
    size_t wide_at;
    size_t deep_at;
    size_t deep_width;
    const char *tensor;
    int combine;
} sl_feature_info;
/* Gives feature i. */
SL_API SL_MUST_USE sl_status sl_ranker_get_feature(const sl_ranker *ranker, size_t i, sl_feature_info *out);

/* A weight: "wide" (wide_size, outputs), "bias" (outputs), "embedding.NAME" (size, dim), "dense.I.weight" (in, out),
   "dense.I.bias" (out). */
typedef struct sl_tensor {
    const char *name;
    const float *data;
    size_t rows, columns;
} sl_tensor;
SL_API size_t sl_ranker_tensor_count(const sl_ranker *ranker);
SL_API SL_MUST_USE sl_status sl_ranker_get_tensor(const sl_ranker *ranker, size_t i, sl_tensor *out);
/* Copies base, with these weights instead of its own. Errors: SL_ENOTFOUND (a name), SL_EDIM (a shape), SL_EVALUE (not
   finite). */
SL_API SL_MUST_USE sl_status sl_ranker_with_tensors(const sl_ranker *base, const sl_tensor *tensors, size_t count,
                                                    sl_ranker **out);

/* A layer that another tool quantised. F32 and BF16 take the base's weights. */
typedef struct sl_quantized_layer {
    sl_precision precision;
    float scale; /* as of sl_layer_info */
    int zero;
    const int8_t *codes; /* (in, out); a weight is codes[i * out + o] * weight_scales[o] */
    const float *weight_scales;
} sl_quantized_layer;
/* Copies base, a model of floats, with one of these per layer; all else stays. Errors: SL_EINVAL (count; a model
   quantised already; all layers F32; a scale, a zero), SL_EVALUE (weights beyond bf16). */
SL_API SL_MUST_USE sl_status sl_ranker_with_layers(const sl_ranker *base, const sl_quantized_layer *layers,
                                                   size_t count, sl_ranker **out);

typedef enum sl_prune_criterion {
    SL_PRUNE_TAYLOR = 0, /* by the change of the loss (arXiv 1906.10771) */
    SL_PRUNE_NORM = 1    /* by norms of weights; needs no rows */
} sl_prune_criterion;

typedef struct sl_prune_params {
    size_t struct_size;
    double units;         /* share of hidden units to cut, 0 (default) to below 1 */
    double multiply_adds; /* instead: share of multiply-adds to cut, at least */
    double weights;       /* share of dense weights to set to 0 */
    double weights_end;   /* share of the steps after which they are; default 0.5 */
    sl_prune_criterion criterion;
    int per_layer;   /* nonzero: each layer loses the same share */
    size_t multiple; /* of widths, rounded up; default 1 */
    size_t rows;     /* for TAYLOR; default 65,536; 0: all */
} sl_prune_params;
SL_API void sl_prune_params_init_sized(sl_prune_params *params, size_t struct_size);
#define sl_prune_params_init(params) sl_prune_params_init_sized((params), sizeof *(params))

#define SL_PRUNE_LAYERS 8u

typedef struct sl_prune_report {
    size_t struct_size;
    size_t hidden_layers;
    size_t hidden_before[SL_PRUNE_LAYERS], hidden[SL_PRUNE_LAYERS];
    size_t parameters_before, parameters;
    size_t bytes_before, bytes;
    size_t multiply_adds_before, multiply_adds;
    size_t dense_weights, dense_zeros;
    size_t rows, valid_rows, epochs, best_epoch;
    double valid_loss_before, valid_loss_cut, valid_loss;
    double valid_auc_before, valid_auc_cut, valid_auc;
    double importance_s, read_s, epoch_s;
} sl_prune_report;

/* Makes a smaller model of a trained one, and trains it on by the ranker's spec. It has fewer hidden units, weights of
   0 (schedule of arXiv 1710.01878), or both.
     train     NULL: cuts at once, units by NORM alone
     training  may have a teacher; its init is NULL
   Errors: as of sl_ranker_train; SL_EINVAL (nothing to cut, no deep part, a share that cannot be reached). */
SL_API SL_MUST_USE sl_status sl_ranker_prune(const sl_ranker *ranker, const sl_rows *train, const sl_rows *valid,
                                             const sl_prune_params *params, const sl_train_params *training,
                                             sl_ranker **out, sl_prune_report *report);

typedef enum sl_measure {
    SL_MEASURE_DEFAULT = 0, /* by the loss */
    SL_MEASURE_AUC = 1,
    SL_MEASURE_LOGLOSS = 2,
    SL_MEASURE_NDCG = 3, /* needs groups */
    SL_MEASURE_RMSE = 4
} sl_measure;

typedef enum sl_strategy {
    SL_STRATEGY_EXHAUSTIVE = 0,
    SL_STRATEGY_ACCURACY_AWARE = 1,
    SL_STRATEGY_BASIC = 2,
    SL_STRATEGY_MSE = 3,
    SL_STRATEGY_BAYESIAN = 4
} sl_strategy;

/* One choice as judged. Arrays have one entry per layer, and last for the call. */
typedef struct sl_trial {
    size_t struct_size;
    size_t number;
    size_t layers;
    const sl_precision *precisions;
    const sl_calibration *calibrations;
    double value, drop;
    double cost;
    int within;
    double error;
    sl_table_type tables;
} sl_trial;
typedef void (*sl_trial_fn)(void *ctx, const sl_trial *trial);

typedef struct sl_precision_search_params {
    size_t struct_size;
    const sl_quantize_params *quantize; /* default: tables AUTO */
    double max_drop;                    /* default 0.0005 */
    int relative;                       /* nonzero: a share of F32's measure */
    sl_measure measure;
    const char *group; /* column of groups */
    size_t ndcg_k;     /* default 10 */
    sl_strategy strategy;
    int leave_static, leave_dynamic; /* nonzero: no INT8, or no INT8_DYNAMIC */
    size_t trials;                   /* at most; 0 (default): no limit, 100 of BAYESIAN */
    double timeout_s;                /* after which no trial begins; 0 (default): none */
    size_t threads;
    sl_trial_fn trial; /* on the calling thread */
    void *trial_ctx;
    sl_progress_fn progress;
    void *progress_ctx;
    int leave_bf16; /* nonzero: no BF16 */
    /* Not NULL: judges one choice, the ranker trained on with INT8 layers. Its init is NULL. */
    const sl_train_params *training;
} sl_precision_search_params;
SL_API void sl_precision_search_params_init_sized(sl_precision_search_params *params, size_t struct_size);
#define sl_precision_search_params_init(params) sl_precision_search_params_init_sized((params), sizeof *(params))

typedef struct sl_precision_search_report {
    size_t struct_size;
    size_t trials;
    size_t rows;
    double base_value;
    double value, drop;
    double drop_error;
    double cost;
    int within;
    int proved;
    size_t blame;
    double blame_drop;
    double seconds;
    sl_table_type tables;
} sl_precision_search_report;

/* Finds the fastest precisions within an accuracy bound.
     eval    to measure on; NULL: `rows`
     out     if none is within the bound, the one of least drop
   Errors: those of sl_ranker_quantize and of reading labels; SL_EINVAL (max_drop; a measure that the loss or the rows
   lack, or of 0 with relative; no choice faster than F32). */
SL_API SL_MUST_USE sl_status sl_ranker_search_precision(const sl_ranker *ranker, const sl_rows *rows,
                                                        const sl_rows *eval, const sl_precision_search_params *params,
                                                        sl_ranker **out, sl_precision_search_report *report);

#ifdef __cplusplus
}
#endif

#endif
