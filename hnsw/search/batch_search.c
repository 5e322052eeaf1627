#include "hnsw/search/batch_search.h"

#include "base/failure.h"
#include "distance/codec/vector_check.h"
#include "hnsw/graph/vectors.h"
#include "hnsw/place/replicas.h"
#include "hnsw/search/accessors.h"
#include "hnsw/search/rerank.h"
#include "hnsw/search/scan_batch.h"
#include "hnsw/search/scan_params.h"
#include "hnsw/search/search_params.h"
#include "hnsw/search/searcher.h"
#include "hnsw/search/searcher_pool.h"

/* Returns the parameters of query i: the batch's, or `own` with the query's filter. */
static const sl_search_params *params_of(const sl_query_batch *batch, size_t i, sl_search_params *own) {
    if (!batch->params->filters) return batch->params;
    *own = *batch->params;
    own->filter = own->filters[batch->first + i];
    own->filters = NULL;
    return own;
}

static sl_status answer_query(sl_query_batch *batch, size_t i, sl_searcher *searcher, sl_search_stats *sum) {
    sl_search_params own;
    if (batch->answer) return batch->answer(batch, i, searcher, sum);
    const sl_search_params *params = params_of(batch, i, &own);
    SL_TRY(sl_searcher_run(searcher, sl_query_batch_query(batch, i), batch->k, params));
    sl_query_batch_write(batch, searcher, i);
    sl_results_add_stats(searcher, sum);
    return SL_OK;
}

/* Answers query i on one thread. Fails for a bad query, or if the index has grown and memory is short. `bad` keeps the
 * failure of the first failed query. */
static void answer_or_note_failure(sl_query_batch *batch, size_t i, size_t thread, sl_search_stats *sum,
                                   sl_failure *bad) {
    if (sl_progress_cancelled(&batch->progress)) return;
    sl_status status = answer_query(batch, i, batch->searchers[thread], sum);
    if (status != SL_OK) sl_failure_keep(bad, i, status);
    sl_progress_step(&batch->progress, 1);
}

static void answer_on_threads(sl_query_batch *batch, sl_search_stats *sum, sl_failure *bad) {
#pragma omp parallel num_threads((int)batch->threads)
    {
        size_t thread = sl_thread_number();
        sl_search_stats mine = {0};
        sl_numa_pin pin;
        sl_numa_pin_thread(batch->numa, thread, batch->threads, &pin);
#pragma omp for schedule(dynamic, 4)
        for (size_t i = 0; i < batch->nq; i++)
            answer_or_note_failure(batch, i, thread, &mine, bad);
        sl_numa_unpin_thread(batch->numa, &pin);
#pragma omp critical(sl_query_batch_stats)
        { sl_search_stats_add(sum, &mine); }
    }
}

/* Checks every query, then scans partitions in place of walking. */
static sl_status batch_scan(sl_query_batch *batch, sl_search_stats *stats) {
    const sl_codec *codec = &batch->graph->codec;
    for (size_t i = 0; i < batch->nq; i++) {
        sl_status status =
            sl_vector_check(codec->metric, batch->dtype, sl_query_batch_query(batch, i).vector, codec->dim);
        if (status != SL_OK) return sl_fail_in(status, "query %zu", batch->first + i);
    }
    sl_search_stats sum = {0};
    SL_TRY(sl_scan_batch(batch, &sum));
    SL_TRY(sl_progress_end(&batch->progress));
    if (stats) *stats = sum;
    return SL_OK;
}

static sl_status batch_walk(sl_query_batch *batch, sl_search_stats *stats) {
    sl_failure bad;
    sl_search_stats sum = {0};
    sl_failure_init(&bad);
    /* Entering a parallel region takes a good part of a short search's time, even with one thread. */
    if (batch->threads > 1)
        answer_on_threads(batch, &sum, &bad);
    else
        for (size_t i = 0; i < batch->nq; i++)
            answer_or_note_failure(batch, i, 0, &sum, &bad);
    if (bad.status != SL_OK) return sl_fail_in(sl_failure_pass(&bad), "query %zu", batch->first + bad.at);
    SL_TRY(sl_progress_end(&batch->progress));
    if (stats) *stats = sum;
    return SL_OK;
}

/* Returns the max_ef of the batch's searchers. No beam is wider than the index has nodes, so thousands of small indexes
 * keep small searchers. */
static size_t searcher_max_ef(const sl_query_batch *batch, int scans) {
    if (batch->answer) return batch->max_ef;
    const size_t n = batch->graph->n, ef = batch->params->ef, least = ef > batch->k ? ef : batch->k;
    if (scans) return sl_rerank_count(batch->graph, batch->k, batch->params);
    size_t max_ef = sl_search_max_ef(batch->params, batch->k), most = n > least ? n : least;
    return max_ef < most ? max_ef : most;
}

/* All searchers of a batch read its graph, which the caller protects. */
static sl_status take_searcher(const sl_index *index, sl_query_batch *batch, size_t max_ef, size_t thread) {
    SL_TRY(sl_searcher_pool_take(index, max_ef, &batch->searchers[thread]));
    sl_searcher_pin(batch->searchers[thread], batch->graph);
    sl_searcher_enter(batch->searchers[thread]);
    return SL_OK;
}

static void give_searcher(const sl_index *index, sl_query_batch *batch, size_t thread) {
    sl_searcher *searcher = batch->searchers[thread];
    if (!searcher) return;
    sl_searcher_exit(searcher);
    sl_searcher_pin(searcher, NULL);
    sl_searcher_pool_give(index, searcher);
}

sl_status sl_query_batch_run(const sl_index *index, sl_query_batch *batch, sl_search_stats *stats) {
    const sl_graph *graph = batch->graph;
    const sl_search_params *params = batch->params;
    sl_searcher *alone = NULL;
    void *several = NULL;
    if (batch->threads > 1)
        SL_TRY(sl_mem_alloc(&graph->allocator, batch->threads * sizeof *batch->searchers, &several));
    batch->searchers = several ? several : &alone;
    sl_status status = SL_OK;
    int scans = !batch->answer && batch->nq / batch->threads >= SL_SCAN_MIN_QUERIES && sl_can_scan(graph, params);
    size_t max_ef = searcher_max_ef(batch, scans);
    if (max_ef > SL_MAX_EF) max_ef = SL_MAX_EF;
    for (size_t t = 0; t < batch->threads && status == SL_OK; t++)
        status = take_searcher(index, batch, max_ef, t);
    if (status == SL_OK) status = scans ? batch_scan(batch, stats) : batch_walk(batch, stats);
    for (size_t t = 0; t < batch->threads; t++)
        give_searcher(index, batch, t);
    sl_mem_free(&graph->allocator, several, batch->threads * sizeof *batch->searchers);
    return status;
}

sl_status sl_query_batch_begin(const sl_index *index, sl_query_batch *batch, size_t threads, sl_progress_fn progress,
                               void *progress_ctx) {
    const size_t dim = batch->graph->codec.dim;
    if (!batch->queries) return sl_fail(SL_EINVAL, "queries is NULL");
    SL_TRY(sl_check_stride(batch->queries, batch->dtype, dim, batch->stride));
    if (!batch->stride) batch->stride = dim * sl_dtype_size(batch->dtype);
    batch->numa = index->numa;
    batch->threads = sl_search_threads(batch->nq, threads);
    sl_progress_start(&batch->progress, progress, progress_ctx, batch->nq);
    return SL_OK;
}

static sl_status search_batch(const sl_index *index, sl_query_batch *batch, const sl_search_params *params,
                              sl_search_stats *stats) {
    sl_search_params mine;
    SL_TRY(sl_search_params_read(batch->graph, batch->nq, batch->k, params, &mine));
    SL_TRY(sl_search_check(batch->graph, batch->dtype, batch->k, &mine));
    if (stats) *stats = (sl_search_stats){0};
    if (batch->nq == 0) return SL_OK;
    if (!batch->ids) return sl_fail(SL_EINVAL, "ids is NULL");
    batch->params = &mine;
    SL_TRY(sl_query_batch_begin(index, batch, mine.threads, mine.progress, mine.progress_ctx));
    return sl_query_batch_run(index, batch, stats);
}

sl_status sl_index_search(const sl_index *index, const void *queries, sl_dtype dtype, size_t nq, size_t stride,
                          size_t k, const sl_search_params *params, uint64_t *ids, float *scores,
                          sl_search_stats *stats) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    sl_query_batch batch = {
        .queries = queries, .dtype = dtype, .nq = nq, .stride = stride, .k = k, .ids = ids, .scores = scores};
    sl_reading reading;
    sl_replicas_make(index);
    batch.graph = sl_reading_begin(index, &reading);
    sl_status status = search_batch(index, &batch, params, stats);
    sl_reading_end(&reading);
    return status;
}
