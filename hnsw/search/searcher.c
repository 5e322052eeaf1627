#include "hnsw/search/searcher.h"

#include "hnsw/search/allowed.h"
#include "hnsw/search/filtered.h"
#include "hnsw/search/grouped.h"
#include "hnsw/search/partition_probe.h"
#include "hnsw/search/rerank.h"
#include "hnsw/search/scan_params.h"
#include "hnsw/search/search_params.h"
#include "hnsw/search/start.h"
#include "hnsw/search/widen.h"

static sl_status probe(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params) {
    sl_walk *walk = &searcher->walk;
    size_t keep = sl_rerank_count(walk->graph, k, params);
    uint8_t *scratch;
    if (keep > SL_MAX_EF) keep = SL_MAX_EF;
    SL_TRY(sl_searcher_scratch(searcher, sl_probe_scratch(walk->graph), &scratch));
    SL_TRY(sl_walk_deepen(walk, keep));
    sl_probe(walk, query, params, keep, scratch);
    return SL_OK;
}

/* Finds what may be returned, where not every node may. */
static void find_allowed(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params) {
    const sl_graph *graph = searcher->graph;
    sl_filtered filtered = {.walk = &searcher->walk,
                            .params = params,
                            .query = query,
                            .k = k,
                            .ranked = sl_rerank_count(graph, k, params),
                            .deepest = searcher->deepest,
                            .scratch = searcher->start_scratch};
    sl_filter_strategy used = sl_filtered_find(&filtered);
    if (params->filter) searcher->used = used;
}

static sl_status find(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params) {
    const sl_graph *graph = searcher->graph;
    sl_walk *walk = &searcher->walk;
    int scans = sl_scan_serves(graph, params);
    if (scans) SL_TRY(probe(searcher, query, k, params));
    /* A scan may find too little where much is deleted. */
    if (scans && (walk->pool.size >= k || !graph->dead_count)) return SL_OK;
    SL_TRY(sl_searcher_start_scratch(searcher));
    if (graph->dead_count || sl_accept_given(params)) {
        find_allowed(searcher, query, k, params);
        return SL_OK;
    }
    const sl_allowed all = sl_allowed_all(graph);
    sl_widen(walk, &(sl_widening){.params = params,
                                  .allowed = &all,
                                  .k = k,
                                  .wanted = sl_rerank_count(graph, k, params),
                                  .near = sl_start_near(walk, query, searcher->start_scratch)});
    return SL_OK;
}

/* Searches the index as it was looked at last. */
static sl_status run(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params) {
    SL_TRY(sl_searcher_prepare(searcher, query, params));
    if (searcher->graph->n && (params->group_size || sl_ids_repeat(searcher->graph))) {
        SL_TRY(sl_grouped_find(searcher, query, k, params));
        if (params->has_threshold) sl_cut_off(searcher, params->threshold);
        return SL_OK;
    }
    if (searcher->graph->n) SL_TRY(find(searcher, query, k, params));
    sl_rank(searcher, query.vector, k, params);
    return SL_OK;
}

sl_status sl_searcher_run(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params) {
    sl_searcher_look(searcher);
    return run(searcher, query, k, params);
}

sl_status sl_searcher_find(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params,
                           sl_found *found, sl_search_stats *stats) {
    sl_search_params mine;
    sl_searcher_look(searcher);
    SL_TRY(sl_search_params_read(searcher->graph, 1, k, params, &mine));
    SL_TRY(sl_one_query_check(&mine));
    SL_TRY(sl_search_check(searcher->graph, query.dtype, k, &mine));
    if (k > searcher->walk.max_ef || mine.ef > searcher->walk.max_ef)
        return sl_fail(SL_EINVAL, "k %zu and ef %zu%s; this searcher was made for %zu: create a larger one", k, mine.ef,
                       mine.recall > 0 ? ", tuned for this recall" : "", searcher->walk.max_ef);
    SL_TRY(run(searcher, query, k, &mine));
    *found = (sl_found){searcher->top.entries, searcher->top.size};
    if (stats) {
        *stats = (sl_search_stats){0};
        sl_searcher_add_stats(searcher, stats);
    }
    return SL_OK;
}

sl_status sl_searcher_search(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                             const sl_search_params *params, uint64_t *ids, float *scores, sl_search_stats *stats) {
    if (!searcher || !query || !ids) return sl_fail(SL_EINVAL, "searcher, query or ids is NULL");
    sl_found found;
    SL_TRY(sl_searcher_find(searcher, (sl_query){query, dtype}, k, params, &found, stats));
    sl_searcher_write(searcher, k, 0, ids, scores);
    return SL_OK;
}
