#include "base/params.h"
#include "distance/codec/vector_check.h"
#include "hnsw/construct/reach.h"
#include "hnsw/construct/renumber.h"
#include "hnsw/graph/vectors.h"
#include "hnsw/graph/version.h"
#include "hnsw/tune/choose_ef.h"
#include "hnsw/tune/choose_probes.h"
#include "hnsw/tune/truth.h"

#include <math.h>

/* The default max_ef. */
#define USUAL_MAX_EF 16384u

/* Progress counts the search for the truth as this many passes. */
#define TRUTH_PASSES 20u

/* The error that a recall estimate should have; the report says how many queries that takes. */
#define TOLERANCE 0.005

void sl_tune_params_init_sized(sl_tune_params *params, size_t struct_size) {
    const sl_tune_params mine = {.struct_size = sizeof mine};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Input
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status read_targets(sl_tune *tune) {
    static const double usual[] = {0.8, 0.85, 0.9, 0.925, 0.95, 0.96, 0.97, 0.98, 0.99, 0.995};
    const double *targets = tune->params.targets ? tune->params.targets : usual;
    size_t count = tune->params.targets ? tune->params.target_count : sizeof usual / sizeof *usual;
    if (!tune->params.targets && tune->params.target_count)
        return sl_fail(SL_EINVAL, "targets is NULL, target_count %zu; give the recalls, or 0", count);
    if (count == 0 || count > SL_MAX_TARGETS)
        return sl_fail(SL_EINVAL, "%zu targets; give 1 to %u", count, SL_MAX_TARGETS);
    for (size_t i = 0; i < count; i++) {
        if (!(targets[i] > 0 && targets[i] <= 1))
            return sl_fail(SL_EINVAL, "target %zu is %g; a recall is above 0 and up to 1", i, targets[i]);
        size_t at = tune->count;
        while (at > 0 && tune->targets[at - 1] > targets[i])
            at--;
        if (at > 0 && tune->targets[at - 1] == targets[i]) continue;
        for (size_t j = tune->count++; j > at; j--)
            tune->targets[j] = tune->targets[j - 1];
        tune->targets[at] = targets[i];
    }
    return SL_OK;
}

static sl_status read_limits(sl_tune *tune) {
    sl_tune_task *task = &tune->task;
    const size_t n = sl_undeleted_count(&task->index->graph), k = task->k;
    size_t most = tune->params.max_ef;
    if (k == 0 || k > SL_MAX_EF) return sl_fail(SL_EINVAL, "k is %zu; give 1 to %u", k, SL_MAX_EF);
    if (k > n) return sl_fail(SL_EINVAL, "k is %zu, but the index holds %zu vectors; tune for a smaller k", k, n);
    if (most && (most < k || most > SL_MAX_EF))
        return sl_fail(SL_EINVAL, "max_ef is %zu; give k (%zu) to %u", most, k, SL_MAX_EF);
    if (task->nq < SL_TUNE_LEAST_QUERIES)
        return sl_fail(SL_EINVAL, "%zu queries tell nothing of others; give at least %u, better some thousand",
                       task->nq, SL_TUNE_LEAST_QUERIES);
    if (most == 0) most = USUAL_MAX_EF;
    if (most > n) most = n;
    task->max_ef = most > k ? most : k;
    task->threads = sl_thread_count(tune->params.threads);
    if (task->threads > task->nq) task->threads = task->nq;
    return SL_OK;
}

static sl_status read_queries(sl_tune *tune, const void *queries, sl_dtype dtype, size_t stride) {
    sl_tune_task *task = &tune->task;
    const sl_codec *codec = &task->index->graph.codec;
    SL_TRY(sl_codec_accepts(codec, dtype));
    SL_TRY(sl_check_stride(queries, dtype, codec->dim, stride));
    task->queries = queries;
    task->dtype = dtype;
    task->stride = stride ? stride : codec->dim * sl_dtype_size(dtype);
    for (size_t q = 0; q < task->nq; q++) {
        sl_status status = sl_vector_check(codec->metric, dtype, task->queries + q * task->stride, codec->dim);
        if (status != SL_OK) return sl_fail_in(status, "query %zu", q);
    }
    return SL_OK;
}

/* Returns whether searches re-rank by data finer than the walk's scores. */
static int reranks(const sl_graph *graph) {
    return sl_has(graph, SL_ARRAY_REFINE) || graph->codes == SL_CODES_I4 || graph->codec.codes == SL_CODES_F32 ||
           !sl_dtype_is_float(graph->codec.dtype);
}

/* Makes a curve for each depth of re-ranking, from the shallowest to all candidates, and one over stop. */
static sl_status make_curves(sl_tune *tune) {
    static const double depths[SL_TUNE_DEPTHS] = {1, 1.3, 1.6, 2, 2.5, 3, 4, 5, 6, 8, 12, 20, (double)SL_MAX_EF};
    sl_tune_task *task = &tune->task;
    const sl_index *index = task->index;
    const sl_allocator *allocator = &index->graph.allocator;
    void *block;
    SL_TRY(sl_mem_alloc(allocator, (task->depth_count + 1) * sizeof *tune->curves, &block));
    tune->curves = block;
    SL_TRY(sl_mem_alloc(allocator, task->nq * sizeof *tune->alone, &block));
    tune->alone = block;
    for (size_t c = 0; c <= task->depth_count; c++)
        tune->curves[c].hits = (double)task->k * (double)task->nq;
    for (size_t d = 0; d < task->depth_count && task->depth_count > 1; d++)
        task->depths[d] = (size_t)fmin(ceil(depths[d] * (double)task->k), SL_MAX_EF);
    /* Evaluations and re-ranked rows cost in proportion to the memory that they read. */
    const sl_array *arrays = index->graph.arrays;
    size_t codes = arrays[SL_ARRAY_CODES].width, coarse = arrays[SL_ARRAY_COARSE].width;
    size_t beside = coarse ? codes : arrays[SL_ARRAY_REST].width, refine = arrays[SL_ARRAY_REFINE].width;
    size_t finer = refine ? refine : beside, walked = coarse ? coarse : codes;
    tune->row_cost = fmax(1, (double)finer / (double)walked);
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Progress: every step has a share, and its end makes up what it did not use
 * ------------------------------------------------------------------------------------------------------------- */

static void begin_progress(sl_tune *tune) {
    uint64_t target = SL_TUNE_ROUNDS + 1 + SL_TUNE_STOP_ROUNDS + 1;
    uint64_t passes = TRUTH_PASSES + SL_TUNE_LADDER + target * (uint64_t)tune->count;
    sl_progress_start(&tune->task.progress, tune->params.progress, tune->params.progress_ctx, passes * tune->task.nq);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The call
 * ------------------------------------------------------------------------------------------------------------- */

static void fill_report(const sl_tune *tune, size_t first, sl_tune_report *report) {
    sl_tune_report mine = {.targets = tune->count, .first = first, .passes = tune->task.passes};
    for (size_t t = 0; t < tune->count; t++) {
        const sl_tuned_record *record = &tune->records[t];
        if (!sl_settings_reached(record)) continue;
        double ratio = 2 * record->standard_error / TOLERANCE;
        size_t needed = (size_t)ceil(ratio * ratio * (double)tune->task.nq);
        mine.reached++;
        if (needed > mine.queries_needed) mine.queries_needed = needed;
    }
    sl_params_out(report, &mine, sizeof mine);
}

static sl_status run_steps(sl_tune *tune, const uint64_t *truth, size_t *first) {
    SL_TRY(make_curves(tune));
    begin_progress(tune);
    /* Renumbers as a save does. Otherwise a save would renumber after the settings are found. */
    sl_progress *progress = &tune->task.progress;
    sl_renumber_settle(tune->task.index, 2, tune->task.threads, progress);
    if (sl_progress_cancelled(progress)) return sl_progress_end(progress);
    SL_TRY(sl_tune_truth(&tune->task, truth, (uint64_t)TRUTH_PASSES * tune->task.nq));
    sl_tune_end_step(tune, TRUTH_PASSES);
    SL_TRY(sl_tune_task_init(&tune->task));
    SL_TRY(sl_tune_measure_ladder(tune));
    for (size_t t = 0; t < tune->count; t++)
        SL_TRY(sl_tune_choose_ef(tune, t));
    if (truth) SL_TRY(sl_tune_check_truth(tune));
    SL_TRY(sl_tune_choose_probes(tune));
    SL_TRY(sl_progress_end(&tune->task.progress));
    return sl_settings_put(tune->task.index, tune->records, tune->count, first);
}

static sl_status tune_index(sl_tune *tune, const void *queries, sl_dtype dtype, size_t stride, const uint64_t *truth,
                            const sl_tune_params *params, sl_tune_report *report) {
    sl_index *index = tune->task.index;
    const sl_allocator *allocator = &index->graph.allocator;
    sl_tune_params_init(&tune->params);
    SL_TRY(sl_params_in(&tune->params, sizeof tune->params, params, "sl_tune_params_init"));
    if (report) SL_TRY(sl_params_check_out(report, "sl_tune_report"));
    SL_TRY(read_targets(tune));
    SL_TRY(read_limits(tune));
    SL_TRY(read_queries(tune, queries, dtype, stride));
    SL_TRY(sl_reach_settle(index));
    /* A search for different ids re-ranks as many candidates as it needs, so only one depth is measured. */
    size_t first, depths = reranks(&index->graph) && !sl_ids_repeat(&index->graph) ? SL_TUNE_DEPTHS : 1;
    tune->task.depth_count = depths;
    sl_status status = run_steps(tune, truth, &first);
    if (status == SL_OK && report) fill_report(tune, first, report);
    SL_FREE_ARRAY(allocator, tune->curves, depths + 1);
    SL_FREE_ARRAY(allocator, tune->alone, tune->task.nq);
    sl_tune_task_free(&tune->task);
    return status;
}

sl_status sl_index_tune(sl_index *index, const void *queries, sl_dtype dtype, size_t nq, size_t stride,
                        const uint64_t *truth, size_t k, const sl_tune_params *params, sl_tune_report *report) {
    if (!index || !queries) return sl_fail(SL_EINVAL, "index or queries is NULL");
    sl_tune tune = {.task = {.index = index, .nq = nq, .k = k}};
    SL_TRY(sl_change_begin(index));
    sl_status status = tune_index(&tune, queries, dtype, stride, truth, params, report);
    sl_change_end(index);
    return status;
}
