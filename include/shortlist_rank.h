/*
 * Shortlist's second half: a wide & deep model (Cheng et al. 2016, arXiv 1606.07792) that ranks what recall found. The
 * conventions of <shortlist.h> hold. Unless an entry says more:
 *
 *   SL_ENOTFOUND   a column, id or tensor is missing
 *   SL_ETYPE       a column has the wrong type
 *   SL_EVALUE      a value cannot be used; the message names its row, or line and column
 *   SL_EEXIST      an id comes twice
 *   SL_EBUSY       another thread updates or saves the item table, or makes a recommender of it
 *   SL_ECORRUPT    the file is damaged; the message names the first fault
 */
#ifndef SHORTLIST_RANK_H
#define SHORTLIST_RANK_H

#include <shortlist.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Rows ---- */

/* The layouts are Apache Arrow's: Arrow and NumPy columns need no copy. */
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
    size_t dim; /* of VECTOR */
    const void *values;
    const int64_t *offsets;
    const int64_t *lists;
    const uint8_t *valid; /* bit r % 8 of byte r / 8 is 0 where row r is missing; NULL: none is */
} sl_column;

/* A block of rows. NaN in a float column and an empty TEXT are missing too. */
typedef struct sl_table {
    size_t struct_size;
    size_t rows;
    size_t column_count;
    const sl_column *columns;
    const char *origin;    /* for messages: file of the rows, or NULL */
    const uint64_t *lines; /* for messages: line of each row, or NULL */
    uint64_t first_row;    /* for messages without lines: rows of the source before these */
} sl_table;

/* A source of rows that can be read again. next fills *block with 1 to max_rows rows, or 0 at the end. They stay valid
 * until the next call. Both return a status, with a failing library call's message. Threads: one at a time. */
typedef struct sl_rows {
    size_t struct_size;
    void *ctx;
    sl_status (*next)(void *ctx, size_t max_rows, sl_table *block);
    sl_status (*rewind)(void *ctx);
} sl_rows;

/* A CSV file (RFC 4180, with \n or \r\n) as a stream of TEXT columns. Limits: 16 MB a row, 16,384 columns. Fields are
 * not trimmed. docs/SPEC.md has more. */
typedef struct sl_csv sl_csv;

typedef struct sl_csv_params {
    size_t struct_size;
    char delimiter;           /* default ',' */
    int header;               /* nonzero (default 1): the first line names the columns */
    const char *const *names; /* of the columns, without a header or in its place */
    size_t name_count;
    const char *spec; /* a ranker's spec: its "csv" replaces the fields above */
    const sl_allocator *allocator;
} sl_csv_params;

SL_API void sl_csv_params_init_sized(sl_csv_params *params, size_t struct_size);
#define sl_csv_params_init(params) sl_csv_params_init_sized((params), sizeof *(params))

/* Opens path and reads its header. Errors: SL_EIO, SL_EFORMAT (no header, a name twice), SL_ELIMIT. */
SL_API SL_MUST_USE sl_status sl_csv_open(const char *path, const sl_csv_params *params, sl_csv **out);
SL_API void sl_csv_free(sl_csv *csv);
/* Gives the file as a source of rows. csv must outlive it. A wrong number of fields, or an open quote, is SL_EFORMAT,
 * which names the line. */
SL_API SL_MUST_USE sl_status sl_csv_rows(sl_csv *csv, sl_rows *out);

/* A table in memory as a source of rows. Table and cursor must outlive it. */
typedef struct sl_table_cursor {
    const sl_table *table;
    size_t at;
    sl_column columns[1]; /* private */
} sl_table_cursor;

/* Bytes of a cursor. */
SL_API size_t sl_table_cursor_size(size_t column_count);
/* cursor has sl_table_cursor_size(table->column_count) bytes, aligned as by malloc. It becomes out->ctx. */
SL_API SL_MUST_USE sl_status sl_table_rows(const sl_table *table, sl_table_cursor *cursor, sl_rows *out);

/* ---- The ranker ---- */

/* A trained model, immutable, for any number of threads. Handles are counted: a recommender keeps its own; free yours
 * at any time. */
typedef struct sl_ranker sl_ranker;

typedef enum sl_loss { SL_LOSS_LOGISTIC = 0, SL_LOSS_MULTICLASS = 1, SL_LOSS_SQUARED = 2 } sl_loss;

typedef struct sl_epoch {
    size_t epoch;      /* from 1 */
    double train_loss; /* mean, as rows were met */
    double valid_loss; /* NaN without validation rows */
    double valid_auc;  /* NaN but for logistic loss */
    double seconds;    /* training alone */
    size_t rows;
    int best; /* nonzero: best so far */
} sl_epoch;
typedef void (*sl_epoch_fn)(void *ctx, const sl_epoch *epoch);

/* Writes an id's vector (dim floats) to out, for vector features whose column holds ids. Several threads may call it. A
 * failure is passed on. */
typedef sl_status (*sl_lookup_fn)(void *ctx, const char *feature, uint64_t id, float *out, size_t dim);

typedef struct sl_train_params {
    size_t struct_size;
    size_t threads;
    const char *checkpoint;  /* file of the training's state, written atomically; NULL: none */
    size_t checkpoint_steps; /* mini-batches between checkpoints, besides one an epoch; 0: none */
    int resume; /* nonzero: goes on from checkpoint if it exists; numbers are as of an uninterrupted training on as many
                   threads */
    size_t epochs; /* 0: the spec's */
    uint64_t seed; /* 0: the spec's */
    sl_lookup_fn lookup;
    void *lookup_ctx;
    sl_epoch_fn epoch;
    void *epoch_ctx;
    const sl_allocator *allocator;
    sl_log_fn log;
    void *log_ctx;
    sl_progress_fn progress; /* in rows of all epochs; cancelled, the last checkpoint stays */
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
    double epoch_s, rows_per_s;               /* mean over this call's epochs, training alone */
    size_t wide_nonzero;                      /* that L1 left in the wide part */
} sl_train_report;

/* Trains a model. A deep part needs a build with oneDNN.
 *   spec    JSON text (docs/SPEC.md)
 *   train   read twice, and kept encoded: 4 bytes a feature and row
 *   valid   NULL: the spec's share of train is held out
 *   report  may be NULL
 * Errors: SL_EINVAL (the spec, naming the key; fewer than 2 rows), SL_ENOTFOUND, SL_ETYPE, SL_EVALUE (also one class
 * alone, but under squared loss; a loss not finite, where the last good checkpoint stays), SL_ELIMIT (a vocabulary
 * overflows), SL_EFORMAT and SL_ECORRUPT (checkpoint, or another training's), SL_EUNSUPPORTED, SL_EIO. */
SL_API SL_MUST_USE sl_status sl_ranker_train(const char *spec, const sl_rows *train, const sl_rows *valid,
                                             const sl_train_params *params, sl_ranker **out, sl_train_report *report);

/* Makes an untrained model, without oneDNN: features fitted to rows, first weights. It uses seed, lookup and allocator
 * of params. One row or class is enough. Errors: as of sl_ranker_train, but for loss and checkpoint. */
SL_API SL_MUST_USE sl_status sl_ranker_create(const char *spec, const sl_rows *rows, const sl_train_params *params,
                                              sl_ranker **out);
SL_API void sl_ranker_free(sl_ranker *ranker);

/* Writes the model as sl_index_save does, with its errors. */
SL_API SL_MUST_USE sl_status sl_ranker_save(const sl_ranker *ranker, const char *path, const sl_save_params *params);

typedef struct sl_ranker_open_params {
    size_t struct_size;
    const sl_allocator *allocator;
    sl_log_fn log;
    void *log_ctx;
} sl_ranker_open_params;
SL_API void sl_ranker_open_params_init_sized(sl_ranker_open_params *params, size_t struct_size);
#define sl_ranker_open_params_init(params) sl_ranker_open_params_init_sized((params), sizeof *(params))

/* Reads a saved model into memory and verifies it. Errors: SL_EIO, SL_EFORMAT, SL_EVERSION, SL_ECORRUPT. */
SL_API SL_MUST_USE sl_status sl_ranker_open(const char *path, const sl_ranker_open_params *params, sl_ranker **out);

/* For sl_ranker_check and sl_items_check. */
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
    size_t features, parameters; /* of the spec; all weights */
    size_t sections_checked;     /* found sound */
    uint64_t bytes_checked;      /* of the file; all if it is sound */
    int checkpoint;              /* nonzero: it also holds a training's state, checked too */
} sl_ranker_check_report;

/* Verifies every byte of a model's file, and all that opening it and going on from it require. *report is filled on
 * failure too. Errors: as of sl_ranker_open. */
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
    size_t layers;      /* dense layers, the last one included */
    size_t first_width; /* of the first layer's output */
    size_t wide_size;   /* of the wide part, a number an output each */
    size_t parameters;  /* all weights */
    size_t bytes;       /* in memory, vocabularies included */
    const char *spec;   /* JSON text; the ranker's */
    int uses_onednn;    /* 0: plain C predicts */
} sl_ranker_info;
SL_API SL_MUST_USE sl_status sl_ranker_get_info(const sl_ranker *ranker, sl_ranker_info *out);
/* The label of output i as text ("" for regression), owned by the ranker. NULL out of range. */
SL_API const char *sl_ranker_class(const sl_ranker *ranker, size_t i);

/* ---- Weights and features from outside: exchange with other formats ---- */

typedef enum sl_feature_form { SL_FORM_DENSE = 0, SL_FORM_ID = 1, SL_FORM_BAG = 2 } sl_feature_form;
typedef enum sl_side { SL_SIDE_USER = 0, SL_SIDE_ITEM = 1, SL_SIDE_PAIR = 2 } sl_side;
typedef struct sl_feature_info {
    size_t struct_size;
    const char *name;
    sl_feature_form form;
    sl_side side;
    size_t at;          /* DENSE: first column of the dense matrix; ID: column of the id matrix; BAG: its number */
    size_t width;       /* DENSE: columns */
    size_t size;        /* ID, BAG: ids are below this */
    size_t wide_at;     /* its first weight in the wide part, or SIZE_MAX */
    size_t deep_at;     /* its first input of the deep part, or SIZE_MAX */
    size_t deep_width;  /* inputs: width, or the embedding's dim */
    const char *tensor; /* its embedding ("embedding.NAME"), maybe shared; NULL: none */
    int combine;        /* BAG's embeddings: 0 sum, 1 mean, 2 max; the wide part sums */
} sl_feature_info;
/* Gives feature i of the spec; *out points into the ranker. */
SL_API SL_MUST_USE sl_status sl_ranker_get_feature(const sl_ranker *ranker, size_t i, sl_feature_info *out);

/* A weight, row-major f32: "wide" (wide_size, outputs), "bias" (outputs), "embedding.NAME" (size, dim),
 * "dense.I.weight" (in, out), "dense.I.bias" (out). */
typedef struct sl_tensor {
    const char *name;
    const float *data;
    size_t rows, columns; /* a vector has 1 row */
} sl_tensor;
SL_API size_t sl_ranker_tensor_count(const sl_ranker *ranker);
/* Points into the ranker. */
SL_API SL_MUST_USE sl_status sl_ranker_get_tensor(const sl_ranker *ranker, size_t i, sl_tensor *out);
/* Makes a ranker with the features and weights of base, but for the given weights. Errors: SL_ENOTFOUND, SL_EDIM (other
 * shape), SL_EVALUE (not finite). */
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
    const uint32_t *bag_ids; /* may be NULL if all bags are empty */
} sl_encoded;

/* ---- Prediction ---- */

/* Scratch of predictions, for one thread at a time. Its ranker must outlive it. */
typedef struct sl_predictor sl_predictor;

typedef struct sl_predictor_params {
    size_t struct_size;
    size_t max_rows; /* rows at a time (larger tables are cut); default 512 */
    size_t threads;  /* threads that share a table's rows; default 1 */
    sl_lookup_fn lookup;
    void *lookup_ctx;
    const sl_allocator *allocator;
} sl_predictor_params;
SL_API void sl_predictor_params_init_sized(sl_predictor_params *params, size_t struct_size);
#define sl_predictor_params_init(params) sl_predictor_params_init_sized((params), sizeof *(params))

/* Makes a predictor. A child of a process that had several threads predicts on one. Errors: SL_EUNSUPPORTED (oneDNN
 * refuses). */
SL_API SL_MUST_USE sl_status sl_predictor_create(const sl_ranker *ranker, const sl_predictor_params *params,
                                                 sl_predictor **out);
SL_API void sl_predictor_free(sl_predictor *predictor);

/* Predicts scores (rows, outputs): values under squared loss, else probabilities. Columns are found by name; others are
 * ignored. Last bits may depend on how many rows are predicted at once. Allocates nothing once it has met as many rows
 * and columns. Errors: SL_ENOTFOUND, SL_ETYPE, SL_EVALUE. */
SL_API SL_MUST_USE sl_status sl_predictor_predict(sl_predictor *predictor, const sl_table *table, float *scores);
/* The same for encoded rows. Errors: SL_EINVAL (also an id out of range, bag_start that falls). */
SL_API SL_MUST_USE sl_status sl_predictor_predict_encoded(sl_predictor *predictor, const sl_encoded *rows,
                                                          float *scores);
/* Encodes up to max_rows rows. *out points into the predictor until its next call. Errors: as above; SL_ELIMIT (more
 * rows). */
SL_API SL_MUST_USE sl_status sl_predictor_encode(sl_predictor *predictor, const sl_table *table, sl_encoded *out);

/* ---- How good ---- */

#define SL_DECILES 10u

typedef struct sl_metrics {
    size_t struct_size;
    size_t rows;
    double logloss;            /* mean; NaN under squared loss */
    double auc;                /* logistic; ties count half; NaN with labels of one kind */
    double accuracy;           /* at 0.5, or by the likeliest class */
    double rmse;               /* of the probability, or of the value */
    double base_rate;          /* mean label */
    double calibration;        /* mean score / mean label */
    double normalized_entropy; /* logloss / entropy of the base rate (He et al. 2014) */
    double group_auc;          /* mean over groups with both labels, by their rows; NaN without groups */
    double ndcg;               /* at ndcg_k, 0 to 1, mean over groups with a positive label; NaN without groups */
    size_t ndcg_k, groups;
    size_t decile_rows[SL_DECILES]; /* rows by score, in ten equal parts */
    double decile_score[SL_DECILES], decile_label[SL_DECILES];
    int ndcg_linear; /* gain of a row. 0: 2^label - 1, for whole labels from 0 to 30. 1: the label, with fractions or
                        above 30. With groups, labels below 0 are refused */
} sl_metrics;

typedef struct sl_evaluate_params {
    size_t struct_size;
    size_t threads;
    const char *group; /* column that groups the rows; NULL: none */
    size_t ndcg_k;     /* default 10 */
    sl_lookup_fn lookup;
    void *lookup_ctx;
    const sl_allocator *allocator;
    sl_progress_fn progress; /* in rows; total 0 where it is not known */
    void *progress_ctx;
} sl_evaluate_params;
SL_API void sl_evaluate_params_init_sized(sl_evaluate_params *params, size_t struct_size);
#define sl_evaluate_params_init(params) sl_evaluate_params_init_sized((params), sizeof *(params))

/* Predicts rows and compares them with their labels, weighted by the spec's column. Errors: SL_ENOTFOUND, SL_ETYPE,
 * SL_EVALUE (also a label below 0 with groups), SL_EINVAL (also no rows), the source's. */
SL_API SL_MUST_USE sl_status sl_ranker_evaluate(const sl_ranker *ranker, const sl_rows *rows,
                                                const sl_evaluate_params *params, sl_metrics *out);

/* The same for any scores (n, outputs). labels has n entries, class numbers under multi-class loss; so have weights and
 * groups, or they are NULL. It uses ndcg_k and allocator of params. Errors: SL_EINVAL (also no rows, scores unfit for
 * the loss), SL_EVALUE (a label unfit for the loss, a NaN, a negative weight, a label below 0 with groups). */
SL_API SL_MUST_USE sl_status sl_metrics_compute(sl_loss loss, size_t outputs, const float *scores, const float *labels,
                                                const float *weights, const uint64_t *groups, size_t n,
                                                const sl_evaluate_params *params, sl_metrics *out);

/* Compares lists of ids with the relevant ones: NDCG@k (gain 1), recall@k, hit rate. Each is the mean over lists with a
 * relevant id, else NaN, or may be NULL. ids is (lists, k); SL_NO_ID ends a list early. Relevant to list i are
 * relevant[start[i]] to relevant[start[i + 1]]. Errors: SL_EINVAL (also start that falls). */
SL_API SL_MUST_USE sl_status sl_list_metrics(const uint64_t *ids, size_t lists, size_t k, const uint64_t *relevant,
                                             const size_t *start, double *ndcg, double *recall, double *hit_rate);

/* ---- Items ---- */

/* Item features by id. Readers never wait: each sees the old row or the new one, whole. Handles are counted, as rankers
 * are. */
typedef struct sl_items sl_items;

typedef struct sl_items_params {
    size_t struct_size;
    const char *id; /* column of the ids (integers, or digits as text); default "id" */
    const sl_allocator *allocator;
    sl_progress_fn progress; /* in rows; total 0 where it is not known */
    void *progress_ctx;
    int exclusive; /* as of sl_open_params: for a table to be updated and saved over its file */
    double wait_s;
} sl_items_params;
SL_API void sl_items_params_init_sized(sl_items_params *params, size_t struct_size);
#define sl_items_params_init(params) sl_items_params_init_sized((params), sizeof *(params))

/* Makes a table. Its columns keep the types of the first block. Errors: SL_ENOTFOUND, SL_EEXIST, SL_ETYPE (also an id
 * column of floats), SL_EVALUE, SL_EINVAL (a source that names no columns), SL_ELIMIT (more than 16,384 columns). */
SL_API SL_MUST_USE sl_status sl_items_create(const sl_rows *rows, const sl_items_params *params, sl_items **out);
/* Maps a saved table and loads its ids alone. The file must not become shorter. Values and texts are verified by
 * sl_items_check, saves and sl_recommender_params.verify. Errors: as of sl_index_open. */
SL_API SL_MUST_USE sl_status sl_items_open(const char *path, const sl_items_params *params, sl_items **out);
/* Writes the table as sl_index_save does, and verifies a mapped file first. Errors also: SL_EBUSY. */
SL_API SL_MUST_USE sl_status sl_items_save(const sl_items *items, const char *path, const sl_save_params *params);
SL_API void sl_items_free(sl_items *items);

typedef struct sl_items_check_report {
    size_t struct_size;
    size_t rows, columns;    /* of the file */
    size_t sections_checked; /* found sound */
    uint64_t bytes_checked;  /* of the file; all if it is sound */
    size_t bad_ids;          /* rows whose id differs from their id column */
} sl_items_check_report;

/* Verifies every byte of the file that the table was opened from, and its ids by their column. *report is filled on
 * failure too; 0 for a table in memory, also once updates have replaced the mapped one. Errors: SL_ECORRUPT, SL_EIO.
 * Threads: safe beside readers and updates. */
SL_API SL_MUST_USE sl_status sl_items_check(const sl_items *items, const sl_file_check_params *params,
                                            sl_items_check_report *report);

/* Replaces rows by id and adds new ones, all or nothing. Columns that rows lacks are missing values. Readers go on.
 * Tell recommenders by sl_recommender_update. Errors: SL_ENOTFOUND (also a column the table lacks), SL_ETYPE,
 * SL_EEXIST, SL_EVALUE, SL_EBUSY. */
SL_API SL_MUST_USE sl_status sl_items_update(sl_items *items, const sl_table *rows);
SL_API size_t sl_items_size(const sl_items *items);
/* The name of column i, in the source's order, owned by the table. NULL behind the last. */
SL_API const char *sl_items_column_name(const sl_items *items, size_t i);
/* Writes a value as text ("12", "0.5", "a|b"), cut to size - 1 bytes and a NUL; *length is its own. Errors:
 * SL_ENOTFOUND. */
SL_API SL_MUST_USE sl_status sl_items_text(const sl_items *items, uint64_t id, const char *column, char *out,
                                           size_t size, size_t *length);

/* ---- From a user to the top n ---- */

/* An index, a ranker and an item table that serve requests. The index must outlive it; it keeps the others. Threads:
 * any number, each with its own session or by the batch call. One at a time swaps or updates beside them; no request
 * waits. */
typedef struct sl_recommender sl_recommender;

/* Data computed ahead for each item. */
typedef enum sl_item_part {
    SL_ITEM_LAYER = 0, /* its part of the first layer and of the wide sum: first_width + outputs floats */
    SL_ITEM_CODES = 1  /* its encoded features: less memory, more work a request */
} sl_item_part;

typedef struct sl_recommender_params {
    size_t struct_size;
    sl_item_part item_part; /* default SL_ITEM_LAYER */
    size_t threads;         /* of preparing items */
    float missing_score;    /* of candidates that the table lacks; NaN (default): scored with all features missing */
    const char *group;      /* column of the groups of max_per_group; NULL: none */
    const sl_allocator *allocator;
    sl_log_fn log;
    void *log_ctx;
    int verify; /* nonzero: verifies a mapped table before it is first prepared, here or by a swap. That reads the whole
                   file */
} sl_recommender_params;
SL_API void sl_recommender_params_init_sized(sl_recommender_params *params, size_t struct_size);
#define sl_recommender_params_init(params) sl_recommender_params_init_sized((params), sizeof *(params))

/* Makes a recommender. ranker NULL: recall alone; items NULL: a ranker without item columns. Errors: SL_ECORRUPT (by
 * verify), SL_EINVAL (a ranker of several classes), SL_ENOTFOUND, SL_ETYPE, SL_EDIM (a vector feature's dim is not the
 * index's), SL_EBUSY. */
SL_API SL_MUST_USE sl_status sl_recommender_create(sl_index *index, sl_ranker *ranker, sl_items *items,
                                                   const sl_recommender_params *params, sl_recommender **out);
/* Free its sessions first. */
SL_API void sl_recommender_free(sl_recommender *recommender);

/* Prepares another model or table (NULL: the one in use), then puts both in use at once. A request sees the old pair or
 * the new one. On failure the old pair stays. Errors: as of sl_recommender_create; SL_EBUSY also while another thread
 * swaps or updates. */
SL_API SL_MUST_USE sl_status sl_recommender_swap(sl_recommender *recommender, sl_ranker *ranker, sl_items *items);
/* Updates rows of the item table in use, and what was computed ahead for them, all or nothing. Errors: as of
 * sl_items_update and of a prediction; SL_EINVAL (no table), SL_EBUSY (also as above). */
SL_API SL_MUST_USE sl_status sl_recommender_update(sl_recommender *recommender, const sl_table *rows);
/* Number of swaps so far: the version in a request's stats. */
SL_API uint64_t sl_recommender_version(const sl_recommender *recommender);

typedef struct sl_request {
    size_t struct_size;
    const void *vector; /* of the index's dimension */
    sl_dtype dtype;
    const sl_table *user; /* the user's features; NULL if the model has none */
    size_t user_row;
    const uint64_t *exclude; /* ids not to be returned */
    size_t exclude_count;
    int (*accept)(void *ctx, uint64_t id); /* as in sl_search_params */
    void *accept_ctx;
    const uint64_t *accept_bits;
    size_t accept_bits_count;
} sl_request;

typedef struct sl_recommend_params {
    size_t struct_size;
    size_t n;             /* items returned; default 10 */
    size_t candidates;    /* recalled and scored, at least n; default 500 */
    size_t ef;            /* of the search; default 0: candidates, at least 64 */
    size_t max_per_group; /* of sl_recommender_params.group; 0: no bound */
    size_t threads;       /* of the batch call; default 1 */
    sl_progress_fn progress;
    void *progress_ctx;
} sl_recommend_params;
SL_API void sl_recommend_params_init_sized(sl_recommend_params *params, size_t struct_size);
#define sl_recommend_params_init(params) sl_recommend_params_init_sized((params), sizeof *(params))

typedef struct sl_recommend_stats {
    size_t requests, results, candidates;
    size_t without_features; /* candidates that the table lacks */
    uint64_t version;        /* of model and table; for a batch the largest */
} sl_recommend_stats;

/* Scratch of one thread's requests. */
typedef struct sl_session sl_session;

/* params: the largest n, candidates and ef to come. */
SL_API SL_MUST_USE sl_status sl_session_create(sl_recommender *recommender, const sl_recommend_params *params,
                                               sl_session **out);
SL_API void sl_session_free(sl_session *session);

/* Gives the top n of one request, best first, equal scores by recall. ids, scores and recall_scores have n entries,
 * filled up with SL_NO_ID and NaN; the last two may be NULL. Without a ranker scores are the recall's. Allocates
 * nothing once warm for the model in use. Errors: as of a search and of a prediction. */
SL_API SL_MUST_USE sl_status sl_session_recommend(sl_session *session, const sl_request *request,
                                                  const sl_recommend_params *params, uint64_t *ids, float *scores,
                                                  float *recall_scores, sl_recommend_stats *stats);
/* Scores count candidates, in their order. recall_scores NULL: computed if the model asks for them, or there is none.
 */
SL_API SL_MUST_USE sl_status sl_session_score(sl_session *session, const sl_request *request, const uint64_t *ids,
                                              const float *recall_scores, size_t count, float *scores,
                                              sl_recommend_stats *stats);
/* Serves many requests on params->threads threads. Outputs are (request_count, n). */
SL_API SL_MUST_USE sl_status sl_recommend(sl_recommender *recommender, const sl_request *requests, size_t request_count,
                                          const sl_recommend_params *params, uint64_t *ids, float *scores,
                                          float *recall_scores, sl_recommend_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
