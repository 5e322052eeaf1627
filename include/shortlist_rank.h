/*
 * Shortlist's second half: a wide & deep model (Cheng et al. 2016, arXiv 1606.07792) that is trained on rows of columns
 * and ranks what recall found, in the same process. The conventions of <shortlist.h> hold here too.
 *
 *   sl_table, sl_rows, sl_csv     rows of named columns, in memory or streamed
 *   sl_ranker                     a model: features as they were fitted, and weights; immutable, shared by threads
 *   sl_predictor                  the scratch of one thread's predictions
 *   sl_metrics                    how good scores are
 *   sl_items                      what is known of each item, by id: a columnar table, mapped, updated while serving
 *   sl_recommender, sl_session    index + ranker + items: from a user to the top n
 */
#ifndef SHORTLIST_RANK_H
#define SHORTLIST_RANK_H

#include <shortlist.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------------------------
 * Rows
 * ------------------------------------------------------------------------------------------------------------- */

/* The layouts are Apache Arrow's, so that Arrow and NumPy columns are handed in as they are. */
typedef enum sl_column_type {
    SL_COLUMN_F32 = 0,   /* values: float[rows] */
    SL_COLUMN_F64 = 1,   /* values: double[rows] */
    SL_COLUMN_I32 = 2,   /* values: int32_t[rows] */
    SL_COLUMN_I64 = 3,   /* values: int64_t[rows] */
    SL_COLUMN_TEXT = 4,  /* values: UTF-8 bytes; row r is bytes offsets[r] to offsets[r + 1] */
    SL_COLUMN_TEXTS = 5, /* row r has texts lists[r] to lists[r + 1]; text t is bytes offsets[t] to offsets[t + 1] */
    SL_COLUMN_VECTOR = 6 /* values: float[rows][dim] */
} sl_column_type;

typedef struct sl_column {
    const char *name;
    sl_column_type type;
    size_t dim; /* of a VECTOR */
    const void *values;
    const int64_t *offsets;
    const int64_t *lists;
    const uint8_t *valid; /* bit r % 8 of byte r / 8 is 0 where row r is missing; NULL: none is */
} sl_column;

/* A block of rows. NaN in a float column and an empty TEXT are missing values as well. */
typedef struct sl_table {
    size_t struct_size;
    size_t rows;
    size_t column_count;
    const sl_column *columns;
    const char *origin;    /* for messages: the file the rows came from, or NULL */
    const uint64_t *lines; /* for messages: the line each row came from, or NULL */
    uint64_t first_row;    /* for messages, where lines is NULL: rows of the source before these; 0 */
} sl_table;

/* A source of rows that can be read more than once. next fills *block with up to max_rows rows (at least one, unless
 * the end is reached: then rows is 0); what it points at is valid until the next call. Both return a status, with the
 * message set by a failing call of the library, and are never called by two threads at once. */
typedef struct sl_rows {
    size_t struct_size;
    void *ctx;
    sl_status (*next)(void *ctx, size_t max_rows, sl_table *block);
    sl_status (*rewind)(void *ctx);
} sl_rows;

/* A CSV file (RFC 4180: quoted fields, doubled quotes, line breaks within quotes; \n or \r\n; a byte order mark is
 * passed over), read as a stream of TEXT columns. Fields are not trimmed. A row has up to 16 MB, a file 16,384 columns;
 * empty lines are passed over where there are several columns. */
typedef struct sl_csv sl_csv;

typedef struct sl_csv_params {
    size_t struct_size;
    char delimiter;           /* default ',' */
    int header;               /* nonzero: the first line names the columns; default 1 */
    const char *const *names; /* names of the columns where there is no header, or instead of the header's */
    size_t name_count;
    const char *spec; /* a ranker's spec: what its "csv" says replaces the fields above; NULL: nothing does */
    const sl_allocator *allocator;
} sl_csv_params;

SL_API void sl_csv_params_init_sized(sl_csv_params *params, size_t struct_size);
#define sl_csv_params_init(params) sl_csv_params_init_sized((params), sizeof *(params))

/* Opens path and reads its header. Errors: SL_EIO, SL_EFORMAT (no header, a name twice), SL_ELIMIT (columns),
 * SL_EINVAL, SL_ENOMEM. */
SL_API SL_MUST_USE sl_status sl_csv_open(const char *path, const sl_csv_params *params, sl_csv **out);
SL_API void sl_csv_free(sl_csv *csv);
/* The file as a source of rows; valid as long as csv is. A row with too few or too many fields, or a quote that is
 * never closed, gives SL_EFORMAT and names its line. */
SL_API SL_MUST_USE sl_status sl_csv_rows(sl_csv *csv, sl_rows *out);

/* A table in memory as a source of rows. The cursor holds the position; table and cursor must outlive the source. */
typedef struct sl_table_cursor {
    const sl_table *table;
    size_t at;
    sl_column columns[1]; /* private: of the last block; see sl_table_cursor_size */
} sl_table_cursor;

/* Bytes of a cursor over a table of column_count columns. */
SL_API size_t sl_table_cursor_size(size_t column_count);
/* `cursor` has sl_table_cursor_size(table->column_count) bytes, aligned as malloc does. out->ctx is the cursor. Errors:
 * SL_EINVAL. */
SL_API SL_MUST_USE sl_status sl_table_rows(const sl_table *table, sl_table_cursor *cursor, sl_rows *out);

/* ---------------------------------------------------------------------------------------------------------------
 * The ranker
 * ------------------------------------------------------------------------------------------------------------- */

/* A trained model. Immutable: any number of threads may use it. Handles are counted: a recommender keeps the ones it
 * uses, so that the caller may free its own at any time. */
typedef struct sl_ranker sl_ranker;

typedef enum sl_loss { SL_LOSS_LOGISTIC = 0, SL_LOSS_MULTICLASS = 1, SL_LOSS_SQUARED = 2 } sl_loss;

/* One epoch, as it ended. */
typedef struct sl_epoch {
    size_t epoch;      /* from 1 */
    double train_loss; /* mean over the epoch's rows, as they were met */
    double valid_loss; /* NaN without validation rows */
    double valid_auc;  /* logistic loss only, else NaN */
    double seconds;    /* training alone */
    size_t rows;
    int best; /* nonzero: the best so far */
} sl_epoch;
typedef void (*sl_epoch_fn)(void *ctx, const sl_epoch *epoch);

/* The vector of an id, for vector features whose column holds ids: dim floats, the feature's, to `out`. May be called
 * from several threads at once. A failure is passed on. */
typedef sl_status (*sl_lookup_fn)(void *ctx, const char *feature, uint64_t id, float *out, size_t dim);

typedef struct sl_train_params {
    size_t struct_size;
    size_t threads;          /* 0: as many as OpenMP gives; default 0 */
    const char *checkpoint;  /* file to write the training's state to, atomically, and to go on from; NULL: none */
    size_t checkpoint_steps; /* batches between two checkpoints within an epoch, besides one an epoch; 0: none; default
                                0 */
    int resume;    /* nonzero: go on from `checkpoint` where it exists; the numbers are then those of a training
                      that was never interrupted, on as many threads. Default 0 */
    size_t epochs; /* 0: as the spec says; default 0 */
    uint64_t seed; /* 0: as the spec says; default 0 */
    sl_lookup_fn lookup;
    void *lookup_ctx;
    sl_epoch_fn epoch;
    void *epoch_ctx;
    const sl_allocator *allocator;
    sl_log_fn log;
    void *log_ctx;
    sl_progress_fn progress; /* in rows, over all epochs; cancelled, the last checkpoint stays */
    void *progress_ctx;
} sl_train_params;

SL_API void sl_train_params_init_sized(sl_train_params *params, size_t struct_size);
#define sl_train_params_init(params) sl_train_params_init_sized((params), sizeof *(params))

typedef struct sl_train_report {
    size_t struct_size;
    size_t rows, valid_rows;
    size_t epochs, best_epoch;
    double train_loss, valid_loss, valid_auc; /* of the best epoch */
    double read_s;                            /* fitting and encoding */
    double epoch_s, rows_per_s;               /* mean over the epochs of this call, training alone */
    size_t wide_nonzero;                      /* weights of the wide part that L1 left standing */
} sl_train_report;

/* Trains a model. `spec` is JSON text (docs/SPEC.md). Reads `train` twice: once to fit statistics and vocabularies,
 * once to encode; the encoded rows are kept in memory (4 bytes a feature and row). `valid` NULL: the share of rows that
 * the spec names is held out of `train`. report may be NULL, else its struct_size is set. Needs a build with oneDNN.
 * Errors: SL_EINVAL (the spec; the message names the key; fewer than 2 rows to train on), SL_ENOTFOUND (unknown
 * column), SL_ETYPE (wrong type), SL_EVALUE (a label or number that cannot be read, naming line and column; labels of
 * one class alone under logistic or multi-class loss; a loss that is not finite: training stops and the last good
 * checkpoint stays), SL_ELIMIT (a vocabulary that overflows), SL_EFORMAT, SL_ECORRUPT (checkpoint, or one of another
 * training), SL_EUNSUPPORTED, SL_ENOMEM, SL_EIO, SL_ECANCELED. */
SL_API SL_MUST_USE sl_status sl_ranker_train(const char *spec, const sl_rows *train, const sl_rows *valid,
                                             const sl_train_params *params, sl_ranker **out, sl_train_report *report);

/* The same without the training, and without oneDNN: features fitted to `rows`, weights as they are before the first
 * step; of params, seed, lookup and allocator count. One row, or one class, is enough. Errors: as sl_ranker_train's but
 * for the loss and the checkpoint. */
SL_API SL_MUST_USE sl_status sl_ranker_create(const char *spec, const sl_rows *rows, const sl_train_params *params,
                                              sl_ranker **out);
/* Gives back a handle; takes NULL. */
SL_API void sl_ranker_free(sl_ranker *ranker);

/* Writes the model as sl_index_save writes an index, and fails as it does. params may be NULL. */
SL_API SL_MUST_USE sl_status sl_ranker_save(const sl_ranker *ranker, const char *path, const sl_save_params *params);

typedef struct sl_ranker_open_params {
    size_t struct_size;
    const sl_allocator *allocator;
    sl_log_fn log;
    void *log_ctx;
} sl_ranker_open_params;
SL_API void sl_ranker_open_params_init_sized(sl_ranker_open_params *params, size_t struct_size);
#define sl_ranker_open_params_init(params) sl_ranker_open_params_init_sized((params), sizeof *(params))

/* Reads a saved model into memory; all of it is verified. Errors: SL_EIO, SL_EFORMAT, SL_EVERSION, SL_ECORRUPT,
 * SL_ENOMEM.
 */
SL_API SL_MUST_USE sl_status sl_ranker_open(const char *path, const sl_ranker_open_params *params, sl_ranker **out);

/* How a file is checked: of sl_ranker_check and of sl_items_check. */
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
    size_t features, parameters; /* of the spec, and all weights */
    size_t sections_checked;     /* that agree with their checksums */
    uint64_t bytes_checked;      /* of the file: all of it where it is sound */
    int checkpoint;              /* nonzero: the file also holds the state of a training, which was checked too */
} sl_ranker_check_report;

/* Verifies every byte of a model's file: the header, each section against its checksum, zeros between the sections, and
 * then every rule that opening it and going on from a checkpoint hold it to. It takes the path, since a ranker that is
 * open is a copy in memory and knows its file no more. Takes memory as opening does. Errors: SL_ECORRUPT, with the
 * first fault in the message; those of sl_ranker_open; SL_ECANCELED. *report, whose struct_size the caller has set, is
 * filled in any case with what was verified until then. params may be NULL. */
SL_API SL_MUST_USE sl_status sl_ranker_check(const char *path, const sl_file_check_params *params,
                                             sl_ranker_check_report *report);

typedef struct sl_ranker_info {
    size_t struct_size;
    sl_loss loss;
    size_t outputs;     /* scores a row: 1, or the number of classes */
    size_t features;    /* of the spec */
    size_t dense_width; /* floats a row */
    size_t id_count;    /* single-valued categorical features */
    size_t bag_count;   /* multi-valued ones */
    size_t deep_inputs; /* width of the first layer's input; 0 without a deep part */
    size_t layers;      /* dense layers, the last one to the outputs included */
    size_t first_width; /* of the first layer's output */
    size_t wide_size;   /* weights of the wide part, a number an output each */
    size_t parameters;  /* all weights */
    size_t bytes;       /* in memory, of weights and vocabularies */
    const char *spec;   /* JSON text; owned by the ranker */
    int uses_onednn;    /* 0: the C fallback predicts */
} sl_ranker_info;
/* Fills *out, whose struct_size the caller has set. */
SL_API SL_MUST_USE sl_status sl_ranker_get_info(const sl_ranker *ranker, sl_ranker_info *out);
/* The label's value that output i stands for, as text ("" for regression); owned by the ranker. NULL out of range. */
SL_API const char *sl_ranker_class(const sl_ranker *ranker, size_t i);

/* ---- Weights and features from outside: exchange with other formats ---- */

/* A feature as it enters the model. */
typedef enum sl_feature_form { SL_FORM_DENSE = 0, SL_FORM_ID = 1, SL_FORM_BAG = 2 } sl_feature_form;
typedef enum sl_side { SL_SIDE_USER = 0, SL_SIDE_ITEM = 1, SL_SIDE_PAIR = 2 } sl_side;
typedef struct sl_feature_info {
    size_t struct_size;
    const char *name;
    sl_feature_form form;
    sl_side side;
    size_t at;      /* DENSE: first column of the dense matrix; ID: column of the id matrix; BAG: number of the bag */
    size_t width;   /* DENSE: columns */
    size_t size;    /* ID, BAG: ids are below this */
    size_t wide_at; /* first of its weights in the wide part; SIZE_MAX where it is not in it */
    size_t deep_at; /* first of its inputs to the deep part; SIZE_MAX where it is not in it */
    size_t deep_width;  /* inputs: width, or the embedding's dim */
    const char *tensor; /* its embedding's name ("embedding.NAME"), shared ones the same; NULL where it has none */
    int combine;        /* BAG: 0 sum, 1 mean, 2 max, of the embeddings; the wide part sums */
} sl_feature_info;
/* Fills *out, whose struct_size the caller has set; what it points at is the ranker's. Features are numbered as in the
 * spec. Errors: SL_EINVAL (i out of range). */
SL_API SL_MUST_USE sl_status sl_ranker_get_feature(const sl_ranker *ranker, size_t i, sl_feature_info *out);

/* A weight: "wide" (wide_size, outputs), "bias" (outputs), "embedding.NAME" (size, dim), "dense.I.weight" (in, out),
 * "dense.I.bias" (out). Row-major f32. */
typedef struct sl_tensor {
    const char *name;
    const float *data;
    size_t rows, columns; /* of a vector: rows 1 */
} sl_tensor;
SL_API size_t sl_ranker_tensor_count(const sl_ranker *ranker);
/* Points into the ranker. Errors: SL_EINVAL (i out of range). */
SL_API SL_MUST_USE sl_status sl_ranker_get_tensor(const sl_ranker *ranker, size_t i, sl_tensor *out);
/* A ranker with the features of `base` and the given weights; those not given are base's. Errors: SL_ENOTFOUND (no such
 * tensor), SL_EDIM (other shape), SL_EVALUE (not finite), SL_ENOMEM. */
SL_API SL_MUST_USE sl_status sl_ranker_with_tensors(const sl_ranker *base, const sl_tensor *tensors, size_t count,
                                                    sl_ranker **out);

/* Rows as the model sees them. */
typedef struct sl_encoded {
    size_t struct_size;
    size_t rows;
    const float *dense;  /* (rows, dense_width) */
    const uint32_t *ids; /* (rows, id_count) */
    const uint32_t
        *bag_start; /* (rows * bag_count + 1): bag b of row r is bag_ids[bag_start[r * bag_count + b]] to the next */
    const uint32_t *bag_ids; /* may be NULL where all bags are empty */
} sl_encoded;

/* ---- Prediction ---- */

/* The scratch of one thread's predictions: never used by two at once; its ranker must outlive it. */
typedef struct sl_predictor sl_predictor;

typedef struct sl_predictor_params {
    size_t struct_size;
    size_t max_rows; /* rows predicted at a time; larger tables are cut; default 512 */
    size_t threads;  /* a table's rows are shared among them; 0: as many as OpenMP gives; default 1 */
    sl_lookup_fn lookup;
    void *lookup_ctx;
    const sl_allocator *allocator;
} sl_predictor_params;
SL_API void sl_predictor_params_init_sized(sl_predictor_params *params, size_t struct_size);
#define sl_predictor_params_init(params) sl_predictor_params_init_sized((params), sizeof *(params))

/* params may be NULL. In a child of a process that has had more than one thread, predictions run on one. Errors:
 * SL_EINVAL (max_rows 0), SL_ENOMEM, SL_EUNSUPPORTED (oneDNN refuses). */
SL_API SL_MUST_USE sl_status sl_predictor_create(const sl_ranker *ranker, const sl_predictor_params *params,
                                                 sl_predictor **out);
SL_API void sl_predictor_free(sl_predictor *predictor);

/* scores: (rows, outputs): a probability under logistic and multi-class loss, a value under squared loss. Columns are
 * found by name; those the model does not know are ignored. A row's score may differ in its last bits with how many
 * rows are predicted at once, since oneDNN may add up in another order. Allocates nothing once warm (a call of as many
 * rows and columns before). Errors: SL_ENOTFOUND (a column the model needs), SL_ETYPE, SL_EVALUE (naming the row). */
SL_API SL_MUST_USE sl_status sl_predictor_predict(sl_predictor *predictor, const sl_table *table, float *scores);
/* The same of rows that are encoded already; rows->struct_size is set. Errors: SL_EINVAL (an id out of range, bag_start
 * that falls, an array that is NULL). */
SL_API SL_MUST_USE sl_status sl_predictor_predict_encoded(sl_predictor *predictor, const sl_encoded *rows,
                                                          float *scores);
/* Encodes up to max_rows rows; what *out points at is the predictor's until its next call. out->struct_size is set.
 * Errors: as sl_predictor_predict's, SL_ELIMIT (more rows). */
SL_API SL_MUST_USE sl_status sl_predictor_encode(sl_predictor *predictor, const sl_table *table, sl_encoded *out);

/* ---- How good ---- */

#define SL_DECILES 10u

typedef struct sl_metrics {
    size_t struct_size;
    size_t rows;
    double logloss;            /* mean negative log likelihood; NaN under squared loss */
    double auc;                /* of a logistic ranker; ties count half; NaN with labels of one kind */
    double accuracy;           /* at 0.5, or of the likeliest class */
    double rmse;               /* of the probability, or of the value */
    double base_rate;          /* mean label */
    double calibration;        /* mean score / mean label */
    double normalized_entropy; /* logloss / entropy of the base rate (He et al. 2014) */
    double group_auc;          /* mean over groups that have both labels, by their rows; NaN without groups */
    double ndcg;               /* at ndcg_k, mean over groups with a positive label; 0 to 1; NaN without groups */
    size_t ndcg_k, groups;
    size_t decile_rows[SL_DECILES]; /* rows in order of their scores, in ten equal parts */
    double decile_score[SL_DECILES], decile_label[SL_DECILES];
    int ndcg_linear; /* the gain of a row in ndcg. 0: 2^label - 1; every label is a whole number from 0 to 30.
                      * 1: the label; some label is a fraction or above 30. Labels below 0 are refused with groups. */
} sl_metrics;

typedef struct sl_evaluate_params {
    size_t struct_size;
    size_t threads;    /* default 0: as many as OpenMP gives */
    const char *group; /* column whose values group the rows; NULL: none */
    size_t ndcg_k;     /* default 10 */
    sl_lookup_fn lookup;
    void *lookup_ctx;
    const sl_allocator *allocator;
    sl_progress_fn progress; /* in rows; total 0 where it is not known */
    void *progress_ctx;
} sl_evaluate_params;
SL_API void sl_evaluate_params_init_sized(sl_evaluate_params *params, size_t struct_size);
#define sl_evaluate_params_init(params) sl_evaluate_params_init_sized((params), sizeof *(params))

/* Predicts rows that have the label's column, and compares; weights are those of the spec's column. params may be NULL.
 * `out`'s struct_size is set. Errors: SL_ENOTFOUND (a column of the model's, the label's, or the group's), SL_ETYPE,
 * SL_EVALUE (a group, and a label below 0: NDCG takes none), SL_EINVAL (no rows, ndcg_k 0), SL_ENOMEM, SL_ECANCELED,
 * those of the source. */
SL_API SL_MUST_USE sl_status sl_ranker_evaluate(const sl_ranker *ranker, const sl_rows *rows,
                                                const sl_evaluate_params *params, sl_metrics *out);

/* The same of scores from anywhere: scores (n, outputs), labels n (a class's number under multi-class loss), weights
 * and groups n each or NULL. Of params, which may be NULL, ndcg_k and allocator count. Errors: SL_EINVAL (no rows,
 * ndcg_k 0, scores that do not fit the loss), SL_EVALUE (naming the row: a label the loss does not have, a NaN, a
 * negative weight, with groups a label below 0), SL_ENOMEM. */
SL_API SL_MUST_USE sl_status sl_metrics_compute(sl_loss loss, size_t outputs, const float *scores, const float *labels,
                                                const float *weights, const uint64_t *groups, size_t n,
                                                const sl_evaluate_params *params, sl_metrics *out);

/* Lists of ids against the relevant ones: NDCG@k (gain 1), recall@k and hit rate, means over the lists that have a
 * relevant id. ids: (lists, k), ended early by SL_NO_ID; relevant ids of list i are relevant[start[i]] to
 * relevant[start[i + 1]]. Any of the outputs may be NULL; without such a list they are NaN. Errors: SL_EINVAL
 * (k 0, start that falls, an array that is NULL). */
SL_API SL_MUST_USE sl_status sl_list_metrics(const uint64_t *ids, size_t lists, size_t k, const uint64_t *relevant,
                                             const size_t *start, double *ndcg, double *recall, double *hit_rate);

/* ---------------------------------------------------------------------------------------------------------------
 * Items
 * ------------------------------------------------------------------------------------------------------------- */

/* What is known of each item, by id. Readers never wait: a row is replaced as a whole, and whoever reads sees the old
 * row or the new one. Handles are counted, as rankers are. */
typedef struct sl_items sl_items;

typedef struct sl_items_params {
    size_t struct_size;
    const char *id; /* column of the ids (integers, or text of digits); default "id" */
    const sl_allocator *allocator;
    sl_progress_fn progress; /* in rows; total 0 where it is not known */
    void *progress_ctx;
    int exclusive; /* of sl_items_open, and wait_s: as of sl_open_params. A table that is updated and saved over its
                      file is opened so */
    double wait_s;
} sl_items_params;
SL_API void sl_items_params_init_sized(sl_items_params *params, size_t struct_size);
#define sl_items_params_init(params) sl_items_params_init_sized((params), sizeof *(params))

/* Columns keep the types of the first block. Errors: SL_ENOTFOUND (no id column), SL_EEXIST (an id twice), SL_EVALUE,
 * SL_EINVAL (a source that ends before it names its columns), SL_ELIMIT (more than 16,384 columns). */
SL_API SL_MUST_USE sl_status sl_items_create(const sl_rows *rows, const sl_items_params *params, sl_items **out);
/* Maps a saved table; nothing is loaded but the ids. Values and texts are read where they lie, and not verified here:
 * sl_items_check does that, a save does before it copies them, and a recommender where sl_recommender_params.verify
 * asks for it. As of a mapped index, the file must not become shorter. Errors as of sl_index_open. */
SL_API SL_MUST_USE sl_status sl_items_open(const char *path, const sl_items_params *params, sl_items **out);
/* As sl_index_save. What is copied from a mapped file is first verified against the checksums it has there: SL_ECORRUPT
 * where it is damaged, so that damage never gets checksums of its own. SL_EBUSY while another thread updates or saves
 * it, or makes a recommender of it. */
SL_API SL_MUST_USE sl_status sl_items_save(const sl_items *items, const char *path, const sl_save_params *params);
SL_API void sl_items_free(sl_items *items);

typedef struct sl_items_check_report {
    size_t struct_size;
    size_t rows, columns;    /* of the file */
    size_t sections_checked; /* that agree with their checksums */
    uint64_t bytes_checked;  /* of the file: all of it where it is sound */
    size_t bad_ids;          /* rows whose id is not that of their id column */
} sl_items_check_report;

/* Verifies every byte of the file that the table was opened from: the header, each section against its checksum, zeros
 * between the sections; and that each row's id is what its id column says. All other rules of the file were checked
 * when it was opened. SL_OK means that all of it holds; SL_ECORRUPT that it does not, with the first fault in the
 * message. *report, whose struct_size the caller has set, is filled in both cases; it is all zero of a table in memory,
 * which has no file, also once updates have replaced what was mapped. Safe beside readers and updates. params may be
 * NULL. Other errors: SL_EINVAL, SL_ECANCELED. */
SL_API SL_MUST_USE sl_status sl_items_check(const sl_items *items, const sl_file_check_params *params,
                                            sl_items_check_report *report);

/* Replaces the rows of the ids in `rows`, and adds those that are new; all or nothing. Columns `rows` lacks are missing
 * values in the new rows. One thread at a time (another gets SL_EBUSY); readers go on. Recommenders that use the table
 * are told by sl_recommender_update. Errors: SL_ENOTFOUND (no id column, or a column the table lacks), SL_ETYPE,
 * SL_EEXIST (an id twice in `rows`), SL_EVALUE, SL_ENOMEM, SL_EBUSY. */
SL_API SL_MUST_USE sl_status sl_items_update(sl_items *items, const sl_table *rows);
SL_API size_t sl_items_size(const sl_items *items);
/* Name of column i, in the order of the rows it was made from; the table's own. NULL from the number of columns on. */
SL_API const char *sl_items_column_name(const sl_items *items, size_t i);
/* Text of a value ("12", "0.5", "a|b"), cut to size - 1 bytes and ended by NUL; *length is what it would need.
 * Errors: SL_ENOTFOUND (id or column). */
SL_API SL_MUST_USE sl_status sl_items_text(const sl_items *items, uint64_t id, const char *column, char *out,
                                           size_t size, size_t *length);

/* ---------------------------------------------------------------------------------------------------------------
 * From a user to the top n
 * ------------------------------------------------------------------------------------------------------------- */

/* An index, a ranker and an item table that serve requests. The index must outlive it; ranker and items are kept. Any
 * number of threads may use it, each by a session of its own or by the batch call; swapping and updating are done by
 * one thread at a time, beside them, and no request waits for it. */
typedef struct sl_recommender sl_recommender;

/* What is computed ahead for each item. */
typedef enum sl_item_part {
    SL_ITEM_LAYER = 0, /* its part of the first layer and of the wide sum: first_width + outputs floats an item */
    SL_ITEM_CODES = 1  /* only its encoded features: less memory, more work a request */
} sl_item_part;

typedef struct sl_recommender_params {
    size_t struct_size;
    sl_item_part item_part; /* default SL_ITEM_LAYER */
    size_t threads;         /* of preparing the items; 0: as many as OpenMP gives; default 0 */
    float missing_score; /* for candidates the item table lacks; NaN (default): they are scored with missing values in
                            all of their features */
    const char *group;   /* item column of the groups that max_per_group speaks of; NULL: none */
    const sl_allocator *allocator;
    sl_log_fn log;
    void *log_ctx;
    int verify; /* nonzero: a mapped item table is held to its file's checksums before it is first prepared, here or by
                   a swap. That reads all columns, also those that the model does not read: some 0.5 s a GB from the
                   page cache, and from a disk as long as it takes to read the file. Default 0 */
} sl_recommender_params;
SL_API void sl_recommender_params_init_sized(sl_recommender_params *params, size_t struct_size);
#define sl_recommender_params_init(params) sl_recommender_params_init_sized((params), sizeof *(params))

/* Errors: SL_ECORRUPT (with verify, of a damaged table), SL_EINVAL (a ranker of several classes), SL_ENOTFOUND (the
 * model has an item feature whose column the table lacks), SL_ETYPE, SL_EDIM (a vector feature's dim is not the
 * index's), SL_EBUSY (another thread updates or saves the table, or makes a recommender of it), SL_ENOMEM. ranker NULL:
 * recall alone; items may be NULL for a ranker without item columns. */
SL_API SL_MUST_USE sl_status sl_recommender_create(sl_index *index, sl_ranker *ranker, sl_items *items,
                                                   const sl_recommender_params *params, sl_recommender **out);
/* Frees it once the sessions are. */
SL_API void sl_recommender_free(sl_recommender *recommender);

/* Prepares the items for another model or table (NULL: the one in use) and then puts both in use at once: a request
 * sees the old pair or the new one. What no request uses any more is freed by this and the next swap. On failure the
 * old pair goes on serving. Errors: as of sl_recommender_create; SL_EBUSY also while another thread swaps or updates.
 */
SL_API SL_MUST_USE sl_status sl_recommender_swap(sl_recommender *recommender, sl_ranker *ranker, sl_items *items);
/* Updates rows of the item table in use, and what was computed ahead for them; all or nothing. Errors: as of
 * sl_items_update and of a prediction; SL_EINVAL (there is no table), SL_EBUSY. */
SL_API SL_MUST_USE sl_status sl_recommender_update(sl_recommender *recommender, const sl_table *rows);
/* Number of swaps so far: the version that a request's stats name. */
SL_API uint64_t sl_recommender_version(const sl_recommender *recommender);

typedef struct sl_request {
    size_t struct_size;
    const void *vector; /* of the index's dimension */
    sl_dtype dtype;
    const sl_table *user; /* the user's features; NULL where the model has none */
    size_t user_row;
    const uint64_t *exclude; /* ids not to be returned: what the user has seen */
    size_t exclude_count;
    int (*accept)(void *ctx, uint64_t id); /* as in sl_search_params */
    void *accept_ctx;
    const uint64_t *accept_bits;
    size_t accept_bits_count;
} sl_request;

typedef struct sl_recommend_params {
    size_t struct_size;
    size_t n;             /* items returned; default 10 */
    size_t candidates;    /* recalled and scored; at least n; default 500 */
    size_t ef;            /* of the search; 0: as many as candidates, at least 64; default 0 */
    size_t max_per_group; /* of the recommender's group column; 0: no bound; default 0 */
    size_t threads;       /* of the batch call; 0: as many as OpenMP gives; default 1 */
    sl_progress_fn progress;
    void *progress_ctx;
} sl_recommend_params;
SL_API void sl_recommend_params_init_sized(sl_recommend_params *params, size_t struct_size);
#define sl_recommend_params_init(params) sl_recommend_params_init_sized((params), sizeof *(params))

typedef struct sl_recommend_stats {
    size_t requests, results, candidates;
    size_t without_features; /* candidates the item table lacks */
    uint64_t version;        /* of the model and table; of a batch: the largest met */
} sl_recommend_stats;

/* The scratch of one thread's requests. */
typedef struct sl_session sl_session;

/* params: the largest n, candidates and ef it will be asked for. */
SL_API SL_MUST_USE sl_status sl_session_create(sl_recommender *recommender, const sl_recommend_params *params,
                                               sl_session **out);
SL_API void sl_session_free(sl_session *session);

/* The top n of one request, best first, equal scores by their recall: ids, scores and recall_scores have n entries,
 * scores and recall_scores may be NULL; fewer are filled up with SL_NO_ID and NaN. Without a ranker the scores are the
 * recall's. Allocates nothing once warm for the model in use. Errors: as of a search and of a prediction. */
SL_API SL_MUST_USE sl_status sl_session_recommend(sl_session *session, const sl_request *request,
                                                  const sl_recommend_params *params, uint64_t *ids, float *scores,
                                                  float *recall_scores, sl_recommend_stats *stats);
/* Ranking alone: scores of count candidates, in their order; recall_scores NULL: computed where the model asks. */
SL_API SL_MUST_USE sl_status sl_session_score(sl_session *session, const sl_request *request, const uint64_t *ids,
                                              const float *recall_scores, size_t count, float *scores,
                                              sl_recommend_stats *stats);
/* Many requests, on params->threads threads: outputs are (request_count, n). */
SL_API SL_MUST_USE sl_status sl_recommend(sl_recommender *recommender, const sl_request *requests, size_t request_count,
                                          const sl_recommend_params *params, uint64_t *ids, float *scores,
                                          float *recall_scores, sl_recommend_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
