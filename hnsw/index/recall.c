#include "hnsw/index/recall.h"

#include "base/clock.h"
#include "base/params.h"
#include "base/random.h"
#include "hnsw/graph/version.h"
#include "hnsw/search/scan_allowed.h"
#include "hnsw/search/widen_beam.h"

#include <math.h>

sl_status sl_recall_sampler_init(sl_recall_sampler *sampler, const sl_graph *graph, size_t k, size_t ef) {
    sl_status status = SL_OK;
    *sampler = (sl_recall_sampler){.top = {.k = k}};
    sampler->top.entries = sl_mem_array(&graph->allocator, k, sizeof *sampler->top.entries, &status);
    if (status == SL_OK) status = sl_walk_init(&sampler->walk, graph, ef);
    if (status != SL_OK) SL_FREE_ARRAY(&graph->allocator, sampler->top.entries, k);
    return status;
}

void sl_recall_sampler_free(sl_recall_sampler *sampler) {
    const sl_allocator allocator = sampler->walk.allocator;
    SL_FREE_ARRAY(&allocator, sampler->top.entries, sampler->top.k);
    sl_walk_free(&sampler->walk);
}

/* The score of the k-th nearest node to the walk's query, not counting the query's own node and deleted nodes. */
static double exact_kth(sl_walk *walk, uint32_t self, sl_top *top) {
    const sl_pool *pool = &walk->pool;
    top->size = 0;
    const sl_allowed all = sl_allowed_all(walk->graph);
    sl_scan_all_allowed(walk, &(sl_search_params){0}, &all, top->k + 1);
    for (size_t i = 0; i < pool->size; i++)
        if (sl_pool_id(pool->keys[i]) != self)
            sl_top_push(top, (double)sl_pool_score(pool->keys[i]), sl_pool_id(pool->keys[i]));
    return top->size ? top->entries[0].score : 0;
}

/* Walks for the query, and leaves what is found in the pool, best first. */
static void search(sl_walk *walk, size_t k) {
    const sl_allowed all = sl_allowed_all(walk->graph);
    const sl_search_params params = {.ef = walk->max_ef};
    walk->pool.size = 0;
    sl_widen_beam(walk, &(sl_beam_params){.search = &params,
                                          .allowed = &all,
                                          .k = k,
                                          .rerank = walk->max_ef,
                                          .max_ef = SL_MAX_EF,
                                          .share = (double)all.count / (double)walk->graph->n});
    sl_pool_sort(&walk->pool);
}

static void note(sl_recall_sampler *sampler, double recall) {
    sampler->taken++;
    sampler->sum += recall;
    sampler->squares += recall * recall;
    sampler->lost += recall < 0.5;
}

/* Nodes that score as well as the k-th count too, so copies of a vector are no misses. */
sl_status sl_recall_sampler_take(sl_recall_sampler *sampler, const sl_graph *graph, uint64_t i) {
    sl_walk *walk = &sampler->walk;
    sl_top *top = &sampler->top;
    walk->graph = graph;
    walk->upper = &graph->upper;
    walk->codec = sl_codec_of_walks(graph);
    size_t drawn = graph->n ? sl_next_undeleted(graph, sl_random_at(graph->seed ^ 0x636865636bu, i) % graph->n) : 0;
    if (drawn >= graph->n) drawn = sl_next_undeleted(graph, 0);
    if (drawn >= graph->n) {
        note(sampler, 1);
        return SL_OK;
    }
    SL_TRY(sl_visited_cover(&walk->visited, &walk->allocator, graph->n));
    sl_walk_set_query_node(walk, graph, (uint32_t)drawn);
    const double kth = exact_kth(walk, (uint32_t)drawn, top);
    if (top->size) search(walk, top->k + 1);
    size_t hits = 0, seen = 0;
    for (size_t j = 0; j < walk->pool.size && seen < top->size; j++) {
        if (sl_pool_id(walk->pool.keys[j]) == drawn) continue;
        hits += (double)sl_pool_score(walk->pool.keys[j]) >= kth;
        seen++;
    }
    note(sampler, top->size ? (double)hits / (double)top->size : 1);
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The call
 * ------------------------------------------------------------------------------------------------------------- */

void sl_recall_params_init_sized(sl_recall_params *params, size_t struct_size) {
    const sl_recall_params mine = {.struct_size = sizeof mine, .sample = 200, .k = 10, .ef = 64};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* Takes vectors until there are enough of them, or time is over. Each reads the version of its time, so that no place
 * is held for long. */
static sl_status sample(const sl_index *index, const sl_recall_params *params, sl_recall_sampler *sampler) {
    const int64_t end = params->seconds > 0 ? sl_now_ns() + (int64_t)(params->seconds * 1e9) : INT64_MAX;
    sl_progress progress;
    sl_progress_start(&progress, params->progress, params->progress_ctx, params->sample);
    sl_status status = SL_OK;
    for (size_t i = 0; i < params->sample && (i == 0 || sl_now_ns() < end); i++) {
        sl_reading reading;
        status = sl_recall_sampler_take(sampler, sl_reading_begin(index, &reading), params->seed + i);
        sampler->walk.graph = &index->graph; /* its geometry */
        sl_reading_end(&reading);
        sl_progress_step(&progress, 1);
        if (status != SL_OK || sl_progress_cancelled(&progress)) break;
    }
    return status == SL_OK ? sl_progress_end(&progress) : status;
}

static sl_status check_recall_params(const sl_recall_params *p) {
    if (!p->sample) return sl_fail(SL_EINVAL, "sample is 0; give at least 1");
    if (!(p->seconds >= 0)) return sl_fail(SL_EINVAL, "seconds is %g; give 0 for no limit, or more", p->seconds);
    if (p->k == 0 || p->k >= SL_MAX_EF || p->ef == 0 || p->ef >= SL_MAX_EF)
        return sl_fail(SL_EINVAL, "k is %zu and ef %zu; give 1 to %u", p->k, p->ef, SL_MAX_EF - 1);
    return SL_OK;
}

sl_status sl_index_recall(const sl_index *index, const sl_recall_params *params, sl_recall_report *report) {
    sl_recall_params mine;
    sl_recall_sampler sampler;
    sl_reading reading;
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    sl_recall_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_recall_params_init"));
    SL_TRY(sl_params_check_out(report, "sl_recall_report"));
    SL_TRY(check_recall_params(&mine));
    sl_status status = sl_recall_sampler_init(&sampler, sl_reading_begin(index, &reading), mine.k,
                                              (mine.ef > mine.k ? mine.ef : mine.k) + 1);
    sl_reading_end(&reading);
    SL_TRY(status);
    sampler.walk.graph = &index->graph;
    status = sample(index, &mine, &sampler);
    const double n = (double)sampler.taken, mean = sampler.sum / n;
    const sl_recall_report found = {.sampled = sampler.taken,
                                    .lost = sampler.lost,
                                    .recall = mean,
                                    .standard_error =
                                        n > 1 ? sqrt(fmax(0, sampler.squares / n - mean * mean) / (n - 1)) : 0};
    sl_recall_sampler_free(&sampler);
    if (status == SL_OK) sl_params_out(report, &found, sizeof found);
    return status;
}
