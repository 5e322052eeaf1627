#include "base/params.h"
#include "base/thread.h"
#include "ranker/features/encode.h"
#include "ranker/features/table.h"
#include "ranker/model/metrics.h"
#include "ranker/model/model.h"

#include <string.h>

/* The results of all rows, kept until the end. */
typedef struct evaluation {
    sl_allocator allocator;
    const sl_ranker *ranker;
    const char *group;
    sl_predictor *predictor;
    size_t n;
    float *scores, *labels, *weights;
    uint64_t *groups;
    size_t score_room, label_room, weight_room, group_room;
} evaluation;

static void free_evaluation(evaluation *e) {
    sl_predictor_free(e->predictor);
    SL_FREE_ARRAY(&e->allocator, e->scores, e->score_room);
    SL_FREE_ARRAY(&e->allocator, e->labels, e->label_room);
    SL_FREE_ARRAY(&e->allocator, e->weights, e->weight_room);
    SL_FREE_ARRAY(&e->allocator, e->groups, e->group_room);
}

static sl_status reserve_rows(evaluation *e, size_t rows) {
    size_t need;
    sl_status status = SL_OK;
    if (!sl_mul(e->n + rows, e->ranker->features->outputs, &need))
        return sl_fail(SL_ENOMEM, "the scores of %zu rows do not fit", e->n + rows);
    e->scores = sl_mem_grow(&e->allocator, e->scores, &e->score_room, need, sizeof *e->scores, &status);
    e->labels = sl_mem_grow(&e->allocator, e->labels, &e->label_room, e->n + rows, sizeof *e->labels, &status);
    e->weights = sl_mem_grow(&e->allocator, e->weights, &e->weight_room, e->n + rows, sizeof *e->weights, &status);
    if (e->group)
        e->groups = sl_mem_grow(&e->allocator, e->groups, &e->group_room, e->n + rows, sizeof *e->groups, &status);
    return status;
}

static sl_status read_groups(evaluation *e, const sl_table *block) {
    size_t number = sl_table_find(block, e->group);
    if (number == SIZE_MAX) return sl_fail_no_column(block, e->group, " to group the rows by");
    return sl_table_groups(block, number, e->groups + e->n);
}

/* The encoder refuses cells that are not finite, so the model alone can cause such scores. */
static sl_status check_scores(const evaluation *e, size_t rows) {
    const size_t outputs = e->ranker->features->outputs;
    const size_t finite = sl_finite_rows(e->scores + e->n * outputs, rows, outputs);
    if (finite == rows) return SL_OK;
    return sl_fail(SL_EVALUE,
                   "the score of row %zu is not finite: the model's weights, or huge values of the row, overflow F32; "
                   "train the model with a lower deep.rate or wide.rate",
                   e->n + finite);
}

static sl_status evaluate_block(evaluation *e, const sl_table *block) {
    SL_TRY(reserve_rows(e, block->rows));
    if (e->group) SL_TRY(read_groups(e, block));
    SL_TRY(sl_labels_read(e->ranker->features, block, e->labels + e->n, e->weights + e->n));
    SL_TRY(sl_predictor_predict(e->predictor, block, e->scores + e->n * e->ranker->features->outputs));
    SL_TRY(check_scores(e, block->rows));
    e->n += block->rows;
    return SL_OK;
}

static sl_status evaluate_rows(evaluation *e, const sl_rows *rows, sl_progress *progress) {
    SL_TRY(rows->rewind(rows->ctx));
    for (;;) {
        sl_table block;
        SL_TRY(sl_rows_next(rows, SL_BLOCK_ROWS, &block));
        if (block.rows == 0) return SL_OK;
        SL_TRY(evaluate_block(e, &block));
        sl_progress_step(progress, block.rows);
        if (sl_progress_cancelled(progress)) return sl_progress_end(progress);
    }
}

/* Refuses rows that all have weight 0, because they have no means. */
static sl_status check_weights(const evaluation *e) {
    const char *column = e->ranker->features->spec->weight;
    if (!column || e->n == 0) return SL_OK;
    for (size_t row = 0; row < e->n; row++)
        if (e->weights[row] > 0) return SL_OK;
    return sl_fail(SL_EVALUE,
                   "all %zu rows have the weight 0 in column '%s', as any number below 7e-46 has; give some a weight "
                   "above 0",
                   e->n, sl_show(column, strlen(column)).text);
}

sl_status sl_ranker_evaluate(const sl_ranker *ranker, const sl_rows *rows, const sl_evaluate_params *params,
                             sl_metrics *out) {
    if (!ranker || !rows) return sl_fail(SL_EINVAL, "ranker or rows is NULL");
    sl_evaluate_params mine;
    sl_evaluate_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_evaluate_params_init"));
    SL_TRY(sl_params_check_out(out, "sl_metrics"));
    SL_TRY(sl_rows_check(rows));
    evaluation e = {.allocator = sl_allocator_of(mine.allocator), .ranker = ranker, .group = mine.group};
    sl_predictor_params predict;
    sl_predictor_params_init(&predict);
    predict.threads = mine.threads;
    predict.lookup = mine.lookup;
    predict.lookup_ctx = mine.lookup_ctx;
    predict.allocator = &e.allocator;
    sl_progress progress;
    sl_status status;
    SL_TRY_GOTO(sl_predictor_create(ranker, &predict, &e.predictor), done);
    sl_progress_start(&progress, mine.progress, mine.progress_ctx, 0);
    SL_TRY_GOTO(evaluate_rows(&e, rows, &progress), done);
    SL_TRY_GOTO(check_weights(&e), done);
    progress.total = e.n;
    SL_TRY_GOTO(sl_progress_end(&progress), done);
    status = sl_metrics_compute(ranker->features->spec->loss, ranker->features->outputs, e.scores, e.labels, e.weights,
                                e.groups, e.n, &mine, out);
done:
    free_evaluation(&e);
    return status;
}
