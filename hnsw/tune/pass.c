#include "hnsw/tune/pass.h"

#include "base/failure.h"
#include "hnsw/search/rerank.h"

#include <math.h>
#include <string.h>

sl_status sl_tune_task_init(sl_tune_task *task) {
    const sl_allocator *allocator = &task->index->graph.allocator;
    size_t ranks;
    if (!sl_mul(task->threads, task->k, &ranks))
        return sl_fail(SL_ENOMEM, "%zu threads with k %zu do not fit the address space", task->threads, task->k);
    sl_status status = SL_OK;
    task->ranks = sl_mem_array(allocator, ranks, sizeof *task->ranks, &status);
    task->hits = sl_mem_array(allocator, task->nq, sizeof *task->hits, &status);
    task->sums = sl_mem_array(allocator, task->threads, sizeof *task->sums, &status);
    task->searchers = sl_mem_array(allocator, task->threads, sizeof *task->searchers, &status);
    for (size_t t = 0; t < task->threads && status == SL_OK; t++)
        status = sl_searcher_create(task->index, task->max_ef, &task->searchers[t]);
    return status;
}

void sl_tune_task_free(sl_tune_task *task) {
    const sl_allocator *allocator = &task->index->graph.allocator;
    for (size_t t = 0; task->searchers && t < task->threads; t++)
        sl_searcher_free(task->searchers[t]);
    SL_FREE_ARRAY(allocator, task->searchers, task->threads);
    SL_FREE_ARRAY(allocator, task->sums, task->threads);
    SL_FREE_ARRAY(allocator, task->hits, task->nq);
    SL_FREE_ARRAY(allocator, task->ranks, task->threads * task->k);
    SL_FREE_ARRAY(allocator, task->first_of, task->index->graph.n);
    SL_FREE_ARRAY(allocator, task->truth, task->nq * task->k);
}

size_t sl_tune_true_rank(const uint64_t *row, size_t k, uint32_t node) {
    size_t low = 0, high = k;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (row[middle] >> 32 < node)
            low = middle + 1;
        else
            high = middle;
    }
    return low < k && row[low] >> 32 == node ? (size_t)(row[low] & UINT32_MAX) : k;
}

/* Parameters of one pass. first, last: numbers of the shallowest and the deepest re-ranking. */
typedef struct pass {
    size_t results, first, last, watched;
    sl_search_params search;
} pass;

/* Returns how many of a query's true neighbours were found. If `ranks` isn't NULL, counts each of them there too. */
static size_t count_hits(const sl_tune_task *task, const uint64_t *row, const sl_results *found, uint64_t *ranks) {
    const size_t k = task->k;
    size_t hits = 0;
    for (size_t place = 0; place < found->count; place++) {
        size_t rank = sl_tune_true_rank(row, k, sl_tune_id_node(task, found->nodes[place].id));
        if (rank == k) continue;
        hits++;
        /* The first j results are those of a search for j. So a search for j has this hit if both its place and its
         * rank are below j. */
        size_t later = place > rank ? place : rank;
        if (ranks && later < k) ranks[later]++;
    }
    return hits;
}

/* Searches one query with one walk, and re-ranks it to each depth in turn. Depths at least as large as ef are one
 * depth. */
static sl_status search_query(sl_tune_task *task, const pass *pass, size_t q, sl_pass_sums *sums) {
    size_t thread = sl_thread_number(), deepest = pass->last;
    const uint8_t *query = task->queries + q * task->stride;
    const uint64_t *row = task->truth + q * task->k;
    sl_searcher *searcher = task->searchers[thread];
    sl_search_stats stats;
    sl_results found;
    while (deepest > pass->first && task->depths[deepest - 1] >= pass->search.ef)
        deepest--;
    sl_searcher_enter(searcher);
    sl_status status =
        sl_searcher_find(searcher, (sl_query){query, task->dtype}, pass->results, &pass->search, &found, &stats);
    for (size_t d = pass->last + 1; d-- > pass->first && status == SL_OK;) {
        int watched = d == pass->watched;
        if (d < deepest) sl_rerank_again(searcher, query, pass->results, task->depths[d], &found);
        size_t hits = count_hits(task, row, &found, watched ? task->ranks + thread * task->k : NULL);
        sums->hits[d] += hits;
        sums->squares[d] += hits * hits;
        if (watched) task->hits[q] = (uint32_t)hits;
    }
    sl_searcher_exit(searcher);
    if (status == SL_OK) sums->evaluations += stats.evaluations;
    return status;
}

/* Searches every query once. The first thread's sums become those of all threads. */
static sl_status search_all_queries(sl_tune_task *task, const pass *pass) {
    const size_t nq = task->nq, threads = task->threads;
    sl_failure bad;
    sl_pass_sums *sum = task->sums;
    sl_failure_init(&bad);
    memset(task->ranks, 0, threads * task->k * sizeof *task->ranks);
    memset(task->sums, 0, threads * sizeof *task->sums);
#pragma omp parallel for schedule(dynamic, 4) num_threads((int)threads) if (threads > 1)
    for (size_t q = 0; q < nq; q++) {
        if (sl_progress_cancelled(&task->progress)) continue;
        sl_failure_keep(&bad, q, search_query(task, pass, q, &task->sums[sl_thread_number()]));
        sl_progress_step(&task->progress, 1);
    }
    if (bad.status != SL_OK) return sl_fail_in(sl_failure_pass(&bad), "query %zu", bad.at);
    if (sl_progress_cancelled(&task->progress)) return sl_progress_end(&task->progress);
    for (size_t t = 1; t < threads; t++) {
        for (size_t d = pass->first; d <= pass->last; d++) {
            sum->hits[d] += task->sums[t].hits[d];
            sum->squares[d] += task->sums[t].squares[d];
        }
        sum->evaluations += task->sums[t].evaluations;
    }
    task->passes++;
    return SL_OK;
}

sl_tune_point sl_tune_point_of(const sl_tune_task *task, uint64_t hits, uint64_t squares, uint64_t evaluations) {
    double nq = (double)task->nq, k = (double)task->k, mean = (double)hits / nq;
    double variance = fmax(0, (double)squares / nq - mean * mean);
    return (sl_tune_point){
        .recall = mean / k, .error = sqrt(variance / (nq - 1)) / k, .evaluations = (double)evaluations / nq};
}

static sl_tune_point point_of(const sl_tune_task *task, size_t depth) {
    const sl_pass_sums *sum = task->sums;
    return sl_tune_point_of(task, sum->hits[depth], sum->squares[depth], sum->evaluations);
}

sl_status sl_tune_pass(sl_tune_task *task, const sl_pass_settings *settings, sl_tune_point *out) {
    pass pass = {.results = task->k, .last = task->depth_count - 1, .watched = settings->watched};
    if (settings->only) pass.first = pass.last = settings->watched;
    sl_search_params_init(&pass.search);
    pass.search.ef = settings->ef;
    pass.search.stop = settings->stop;
    pass.search.rerank = task->depths[pass.last];
    SL_TRY(search_all_queries(task, &pass));
    for (size_t d = pass.first; d <= pass.last; d++)
        out[d - pass.first] = point_of(task, d);
    return SL_OK;
}

sl_status sl_tune_coverage(sl_tune_task *task, size_t ef, double *share) {
    pass pass = {.results = ef};
    sl_search_params_init(&pass.search);
    pass.search.ef = ef;
    pass.search.rerank = ef;
    SL_TRY(search_all_queries(task, &pass));
    *share = point_of(task, 0).recall;
    return SL_OK;
}

size_t sl_tune_least_k(const sl_tune_task *task, double recall) {
    const size_t k = task->k;
    uint64_t hits = 0;
    size_t least = 1;
    for (size_t rank = 0; rank < k; rank++) {
        for (size_t t = 0; t < task->threads; t++)
            hits += task->ranks[t * k + rank];
        double here = (double)hits / ((double)task->nq * (double)(rank + 1));
        if (here < recall) least = rank + 2;
    }
    return least < k ? least : k;
}
