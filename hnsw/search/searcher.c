#include "hnsw/search/searcher.h"

#include "hnsw/search/allowed.h"
#include "hnsw/search/filter_strategy.h"
#include "hnsw/search/grouped_search.h"
#include "hnsw/search/rerank.h"
#include "hnsw/search/scan_params.h"
#include "hnsw/search/scan_query.h"
#include "hnsw/search/search_params.h"
#include "hnsw/search/start_nodes.h"
#include "hnsw/search/widen_beam.h"

static sl_status scan_nearest_partitions(sl_searcher *searcher, sl_query query, size_t k,
                                         const sl_search_params *params) {
    sl_walk *walk = &searcher->walk;
    size_t keep = sl_rerank_count(walk->graph, k, params);
    uint8_t *scratch;
    if (keep > SL_MAX_EF) keep = SL_MAX_EF;
    SL_TRY(sl_searcher_scratch(searcher, sl_scan_query_scratch(walk->graph), &scratch));
    SL_TRY(sl_walk_reserve(walk, keep));
    sl_scan_query(walk, query, params, keep, scratch);
    return SL_OK;
}

/* Searches an index whose nodes may not all be returned. */
static void find_filtered(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params) {
    const sl_graph *graph = searcher->graph;
    sl_filtered_search filtered = {.walk = &searcher->walk,
                                   .params = params,
                                   .query = query,
                                   .k = k,
                                   .rerank = sl_rerank_count(graph, k, params),
                                   .max_ef = searcher->filter_max_ef,
                                   .scratch = searcher->start_scratch};
    sl_filter_strategy used = sl_search_filtered(&filtered);
    if (params->filter) searcher->strategy = used;
}

static sl_status find_candidates(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params) {
    const sl_graph *graph = searcher->graph;
    sl_walk *walk = &searcher->walk;
    int scans = sl_can_scan(graph, params);
    if (scans) SL_TRY(scan_nearest_partitions(searcher, query, k, params));
    /* Among many tombstones a scan may find fewer than k. */
    if (scans && (walk->pool.size >= k || !graph->deleted_count)) return SL_OK;
    SL_TRY(sl_searcher_reserve_start(searcher));
    if (graph->deleted_count || sl_is_filtered(params)) {
        find_filtered(searcher, query, k, params);
        return SL_OK;
    }
    const sl_allowed all = sl_allowed_all(graph);
    sl_widen_beam(walk, &(sl_beam_params){.search = params,
                                          .allowed = &all,
                                          .k = k,
                                          .rerank = sl_rerank_count(graph, k, params),
                                          .start = searcher->start.first < searcher->start.end
                                                       ? searcher->start
                                                       : sl_start_nodes(walk, query, searcher->start_scratch)});
    return SL_OK;
}

sl_status sl_searcher_run(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params) {
    SL_TRY(sl_searcher_prepare(searcher, query, params));
    if (searcher->graph->n && (params->group_size || sl_ids_repeat(searcher->graph))) {
        SL_TRY(sl_search_grouped(searcher, query, k, params));
        if (params->has_threshold) sl_results_cut(searcher, params->threshold);
        return SL_OK;
    }
    if (searcher->graph->n) SL_TRY(find_candidates(searcher, query, k, params));
    sl_rerank_pool(searcher, query.vector, k, params);
    return SL_OK;
}

sl_status sl_searcher_find(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params,
                           sl_results *found, sl_search_stats *stats) {
    sl_search_params mine;
    SL_TRY(sl_search_params_read(searcher->graph, 1, k, params, &mine));
    SL_TRY(sl_one_query_check(&mine));
    SL_TRY(sl_search_check(searcher->graph, query.dtype, k, &mine));
    if (k > searcher->walk.max_ef || mine.ef > searcher->walk.max_ef)
        return sl_fail(SL_EINVAL, "k %zu and ef %zu%s; this searcher was made for %zu: create a larger one", k, mine.ef,
                       mine.recall > 0 ? ", tuned for this recall" : "", searcher->walk.max_ef);
    SL_TRY(sl_searcher_run(searcher, query, k, &mine));
    *found = (sl_results){searcher->top.entries, searcher->top.size};
    if (stats) {
        *stats = (sl_search_stats){0};
        sl_results_add_stats(searcher, stats);
    }
    return SL_OK;
}

sl_status sl_searcher_search(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                             const sl_search_params *params, uint64_t *ids, float *scores, sl_search_stats *stats) {
    if (!searcher || !query || !ids) return sl_fail(SL_EINVAL, "searcher, query or ids is NULL");
    sl_results found;
    sl_searcher_enter(searcher);
    sl_status status = sl_searcher_find(searcher, (sl_query){query, dtype}, k, params, &found, stats);
    if (status == SL_OK) sl_results_write(searcher, k, 0, ids, scores);
    sl_searcher_exit(searcher);
    return status;
}

void sl_searcher_set_bound(sl_searcher *searcher, float bound, size_t after) {
    searcher->walk.bound = bound;
    searcher->walk.bound_after = after;
}

void sl_searcher_note_beam(sl_searcher *searcher) {
    searcher->walk.notes_beam = 1;
}

float sl_searcher_beam_score(const sl_searcher *searcher) {
    return searcher->walk.beam_score;
}

sl_status sl_searcher_find_start(sl_searcher *searcher, sl_query query, sl_range *start) {
    const sl_search_params params = {.ef = 1};
    sl_status status = SL_OK;
    *start = (sl_range){0, 0};
    sl_searcher_enter(searcher);
    if (searcher->graph->n) status = sl_searcher_prepare(searcher, query, &params);
    if (searcher->graph->n && status == SL_OK) status = sl_searcher_start_nodes(searcher, query, start);
    sl_searcher_exit(searcher);
    return status;
}

void sl_searcher_set_start(sl_searcher *searcher, sl_range start) {
    searcher->start = start;
}
