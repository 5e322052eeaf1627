#include "base/failure.h"
#include "base/params.h"
#include "base/thread.h"
#include "ranker/features/encode.h"
#include "ranker/features/table.h"
#include "ranker/model/model.h"
#include "ranker/net/loss.h"

#include <string.h>

enum { DEFAULT_ROWS = 512, MIN_TILE = 16 };

/* One thread's memory. */
typedef struct worker {
    sl_encoder *encoder;
    sl_rows_buffer rows;
    sl_net_run *run; /* NULL without a deep part */
} worker;

struct sl_predictor {
    sl_allocator allocator;
    const sl_ranker *ranker;
    size_t max_rows;
    size_t threads;
    worker *workers; /* one for each thread */
};

void sl_predictor_params_init_sized(sl_predictor_params *params, size_t struct_size) {
    const sl_predictor_params mine = {.struct_size = sizeof mine, .max_rows = DEFAULT_ROWS, .threads = 1};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* ---- Life ---- */

static sl_status create_worker(const sl_predictor *predictor, const sl_predictor_params *params, worker *out) {
    const sl_ranker *ranker = predictor->ranker;
    out->rows.allocator = predictor->allocator;
    SL_TRY(sl_encoder_create(ranker->features, SL_ALL_SIDES, 0, params->lookup, params->lookup_ctx,
                             &predictor->allocator, &out->encoder));
    if (!ranker->net) return SL_OK;
    return sl_net_run_create(ranker->net, predictor->max_rows, &predictor->allocator, &out->run);
}

sl_status sl_predictor_create(const sl_ranker *ranker, const sl_predictor_params *params, sl_predictor **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    if (!ranker) return sl_fail(SL_EINVAL, "ranker is NULL");
    sl_predictor_params mine;
    sl_predictor_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_predictor_params_init"));
    if (mine.max_rows == 0) return sl_fail(SL_EINVAL, "max_rows is 0; predictions need room for one row at least");
    sl_allocator allocator = sl_allocator_of(mine.allocator);
    void *block;
    SL_TRY(sl_mem_alloc(&allocator, sizeof(sl_predictor), &block));
    sl_predictor *predictor = block;
    predictor->allocator = allocator;
    predictor->ranker = ranker;
    predictor->max_rows = mine.max_rows;
    predictor->threads = sl_thread_count(mine.threads);
    sl_status status = sl_mem_alloc(&allocator, predictor->threads * sizeof *predictor->workers, &block);
    if (status != SL_OK) goto fail;
    predictor->workers = block;
    for (size_t i = 0; i < predictor->threads; i++)
        SL_TRY_GOTO(create_worker(predictor, &mine, &predictor->workers[i]), fail);
    *out = predictor;
    return SL_OK;
fail:
    sl_predictor_free(predictor);
    return status;
}

void sl_predictor_free(sl_predictor *predictor) {
    if (!predictor) return;
    for (size_t i = 0; i < predictor->threads && predictor->workers; i++) {
        sl_encoder_free(predictor->workers[i].encoder);
        sl_rows_buffer_free(&predictor->workers[i].rows);
        sl_net_run_free(predictor->workers[i].run);
    }
    SL_FREE_ARRAY(&predictor->allocator, predictor->workers, predictor->threads);
    SL_FREE(&predictor->allocator, predictor);
}

/* ---- Rows to scores ---- */

/* Computes the logits of encoded rows, at most max_rows. */
static sl_status compute_logits(const sl_ranker *ranker, worker *w, const sl_encoded *rows, float *scores) {
    const sl_features *features = ranker->features;
    const sl_weights *weights = &ranker->weights;
    size_t outputs = features->outputs, count = rows->rows;
    if (w->run) {
        sl_deep_inputs(features, (const float *const *)weights->embeddings, &weights->coded, rows, SL_ALL_SIDES,
                       features->deep_inputs, sl_net_run_input(w->run));
        SL_TRY(sl_net_run_forward(w->run, count, scores));
    } else {
        memset(scores, 0, count * outputs * sizeof *scores);
    }
    if (features->wide_size) sl_wide_sums(features, weights->wide, rows, SL_ALL_SIDES, scores);
    for (size_t r = 0; r < count; r++)
        for (size_t o = 0; o < outputs; o++)
            scores[r * outputs + o] += weights->bias[o];
    return SL_OK;
}

/* A prediction of many rows, split into tiles. */
typedef struct job {
    sl_predictor *predictor;
    const sl_table *table;     /* rows to encode, or NULL */
    const sl_encoded *encoded; /* encoded rows, or NULL */
    size_t rows, tile;
    float *scores;
    int as_logits; /* whether to leave out the link function */
} job;

static sl_status score_rows(const job *j, worker *w, const sl_encoded *rows, float *scores) {
    const sl_features *features = j->predictor->ranker->features;
    SL_TRY(compute_logits(j->predictor->ranker, w, rows, scores));
    if (!j->as_logits) sl_link(features->spec->loss, features->outputs, rows->rows, scores);
    return SL_OK;
}

static sl_status predict_tile(const job *j, size_t number, worker *w) {
    const sl_ranker *ranker = j->predictor->ranker;
    size_t first = number * j->tile;
    size_t count = j->rows - first < j->tile ? j->rows - first : j->tile;
    float *scores = j->scores + first * ranker->features->outputs;
    sl_encoded view;
    if (j->encoded) {
        view = sl_encoded_part(ranker->features, j->encoded, first, count);
        return score_rows(j, w, &view, scores);
    }
    w->rows.rows = 0;
    SL_TRY(sl_encoder_append(w->encoder, j->table, first, count, &w->rows));
    sl_rows_buffer_view(&w->rows, &view);
    return score_rows(j, w, &view, scores);
}

/* Returns the rows of a tile: few enough that every thread has a tile, and enough to pay for waking a thread. */
static size_t choose_tile(const sl_predictor *predictor, size_t rows) {
    size_t tile = (rows + predictor->threads - 1) / predictor->threads;
    if (tile < MIN_TILE) tile = MIN_TILE;
    return tile < predictor->max_rows ? tile : predictor->max_rows;
}

static sl_status predict_tiles(job *j) {
    sl_predictor *predictor = j->predictor;
    j->tile = choose_tile(predictor, j->rows);
    size_t tiles = (j->rows + j->tile - 1) / j->tile;
    /* Counts the threads anew, because a child of the process that made the predictor has only one. */
    if (tiles <= 1 || sl_thread_count(predictor->threads) == 1) {
        for (size_t i = 0; i < tiles; i++)
            SL_TRY(predict_tile(j, i, &predictor->workers[0]));
        return SL_OK;
    }
    sl_failure failure;
    sl_failure_init(&failure);
#pragma omp parallel for schedule(static) num_threads((int)predictor->threads)
    for (size_t i = 0; i < tiles; i++)
        if (!sl_failure_before(&failure, i))
            sl_failure_keep(&failure, i, predict_tile(j, i, &predictor->workers[sl_thread_number()]));
    return sl_failure_pass(&failure);
}

sl_status sl_predictor_predict(sl_predictor *predictor, const sl_table *table, float *scores) {
    if (!predictor) return sl_fail(SL_EINVAL, "predictor is NULL");
    SL_TRY(sl_table_check(table));
    if (!scores && table->rows) return sl_fail(SL_EINVAL, "scores is NULL");
    job j = {.predictor = predictor, .table = table, .rows = table->rows, .scores = scores};
    return predict_tiles(&j);
}

sl_status sl_predictor_logits(sl_predictor *predictor, const sl_table *table, float *logits) {
    job j = {.predictor = predictor, .table = table, .rows = table->rows, .scores = logits, .as_logits = 1};
    return predict_tiles(&j);
}

sl_status sl_predictor_encode(sl_predictor *predictor, const sl_table *table, sl_encoded *out) {
    if (!predictor) return sl_fail(SL_EINVAL, "predictor is NULL");
    SL_TRY(sl_table_check(table));
    SL_TRY(sl_params_check_out(out, "sl_encoded"));
    if (table->rows > predictor->max_rows)
        return sl_fail(SL_ELIMIT, "%zu rows; the predictor was made for %zu at a time", table->rows,
                       predictor->max_rows);
    worker *w = &predictor->workers[0];
    sl_encoded view;
    w->rows.rows = 0;
    SL_TRY(sl_encoder_append(w->encoder, table, 0, table->rows, &w->rows));
    sl_rows_buffer_view(&w->rows, &view);
    view.struct_size = sizeof view;
    sl_params_out(out, &view, sizeof view);
    return SL_OK;
}

/* ---- Encoded rows of the caller ---- */

/* Checks that no start falls. Then none exceeds the last one, and later checks can read by them. */
static sl_status check_starts(const sl_encoded *rows, size_t bag_count) {
    for (size_t bag = 0; bag < rows->rows * bag_count; bag++)
        if (rows->bag_start[bag] > rows->bag_start[bag + 1])
            return sl_fail(SL_EINVAL, "row %zu: bag_start falls from %u to %u", bag / bag_count, rows->bag_start[bag],
                           rows->bag_start[bag + 1]);
    return SL_OK;
}

static sl_status check_bags(const sl_feature *feature, const sl_encoded *rows, size_t bag_count) {
    for (size_t r = 0; r < rows->rows; r++) {
        size_t bag = r * bag_count + feature->at;
        for (uint32_t i = rows->bag_start[bag]; i < rows->bag_start[bag + 1]; i++)
            if (rows->bag_ids[i] >= feature->size)
                return sl_fail(SL_EINVAL, "row %zu: id %u of feature '%s' is not below its size of %zu", r,
                               rows->bag_ids[i], feature->spec->name, feature->size);
    }
    return SL_OK;
}

static sl_status check_ids(const sl_feature *feature, const sl_encoded *rows, size_t id_count) {
    for (size_t r = 0; r < rows->rows; r++)
        if (rows->ids[r * id_count + feature->at] >= feature->size)
            return sl_fail(SL_EINVAL, "row %zu: id %u of feature '%s' is not below its size of %zu", r,
                           rows->ids[r * id_count + feature->at], feature->spec->name, feature->size);
    return SL_OK;
}

static sl_status check_encoded(const sl_features *features, const sl_encoded *rows) {
    if ((features->dense_width && !rows->dense) || (features->id_count && !rows->ids) ||
        (features->bag_count && !rows->bag_start))
        return sl_fail(SL_EINVAL, "the encoded rows lack an array that the model's features need");
    if (features->bag_count) SL_TRY(check_starts(rows, features->bag_count));
    if (features->bag_count && !rows->bag_ids && rows->bag_start[rows->rows * features->bag_count])
        return sl_fail(SL_EINVAL, "bag_ids is NULL, where bag_start says that there are ids");
    for (size_t f = 0; f < features->count; f++) {
        const sl_feature *feature = &features->features[f];
        if (feature->form == SL_FORM_ID) SL_TRY(check_ids(feature, rows, features->id_count));
        if (feature->form == SL_FORM_BAG) SL_TRY(check_bags(feature, rows, features->bag_count));
    }
    return SL_OK;
}

sl_status sl_predictor_predict_encoded(sl_predictor *predictor, const sl_encoded *rows, float *scores) {
    if (!predictor || !rows) return sl_fail(SL_EINVAL, "predictor or rows is NULL");
    sl_encoded mine = {.struct_size = sizeof mine};
    SL_TRY(sl_params_check_out(rows, "sl_encoded"));
    SL_TRY(sl_params_in(&mine, sizeof mine, rows, "sl_predictor_encode"));
    if (!scores && mine.rows) return sl_fail(SL_EINVAL, "scores is NULL");
    if (!mine.rows) return SL_OK;
    SL_TRY(check_encoded(predictor->ranker->features, &mine));
    static const uint32_t no_ids;
    if (!mine.bag_ids) mine.bag_ids = &no_ids;
    job j = {.predictor = predictor, .encoded = &mine, .rows = mine.rows, .scores = scores};
    return predict_tiles(&j);
}
