#include "hnsw/graph/view.h"
#include "hnsw/search/searcher_state.h"

#include "base/params.h"
#include "distance/codec/vector_check.h"
#include "hnsw/place/dram_copy.h"
#include "hnsw/place/replicas.h"
#include "hnsw/search/accept.h"
#include "hnsw/search/filter.h"
#include "hnsw/search/filtered.h"
#include "hnsw/search/grouped.h"
#include "hnsw/search/partition_probe.h"
#include "hnsw/search/partition_scan.h"
#include "hnsw/search/settings.h"
#include "hnsw/search/start.h"
#include "hnsw/search/widen.h"

#include <math.h>

void sl_search_params_init_sized(sl_search_params *params, size_t struct_size) {
    const sl_search_params mine = {.struct_size = sizeof mine, .ef = 64, .threads = 1};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* Puts a larger block in place of a smaller one and its content, where that is wanted. */
static sl_status renew(const sl_searcher *searcher, size_t size, void **block, size_t *has) {
    const sl_allocator *allocator = &searcher->graph->allocator;
    if (size <= *has) return SL_OK;
    sl_mem_free(allocator, *block, *has);
    *block = NULL;
    *has = 0;
    SL_TRY(sl_mem_alloc(allocator, size, block));
    *has = size;
    return SL_OK;
}

/* Makes room for sl_start_near, and for searches that may not return every node. The index may have got partitions
 * since the searcher was made. */
static sl_status start_scratch(sl_searcher *searcher) {
    size_t size = sl_start_scratch(searcher->graph);
    size_t nearest = sl_nearest_scratch(searcher->graph, searcher->walk.max_ef);
    if (nearest > size) size = nearest;
    return renew(searcher, size, &searcher->start_scratch, &searcher->start_scratch_size);
}

sl_status sl_searcher_create(const sl_index *index, size_t max_ef, sl_searcher **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    if (max_ef == 0 || max_ef > SL_MAX_EF) return sl_fail(SL_EINVAL, "max_ef is %zu; give 1 to %u", max_ef, SL_MAX_EF);
    void *block;
    SL_TRY(sl_mem_alloc(&index->graph.allocator, sizeof(sl_searcher), &block));
    sl_searcher *searcher = block;
    searcher->of = index;
    searcher->graph = &index->graph;
    searcher->deepest = max_ef;
    searcher->stream.allocator = index->graph.allocator;
    sl_status status;
    if (index->published) {
        SL_TRY_GOTO(sl_mem_alloc(&index->graph.allocator, sizeof *searcher->view, &block), fail);
        searcher->view = block;
        searcher->graph = sl_view_of(index, searcher->view);
    }
    SL_TRY_GOTO(sl_walk_init(&searcher->walk, searcher->graph, max_ef), fail);
    SL_TRY_GOTO(sl_mem_alloc(&index->graph.allocator, max_ef * sizeof(sl_top_entry), &block), fail);
    searcher->top.entries = block;
    SL_TRY_GOTO(sl_mem_alloc(&index->graph.allocator, index->graph.codec.dim * sizeof(float), &block), fail);
    searcher->candidate = block;
    uint8_t *scratch;
    if (searcher->graph->partitions.count) {
        SL_TRY_GOTO(sl_searcher_scratch(searcher, sl_probe_scratch(searcher->graph), &scratch), fail);
    }
    SL_TRY_GOTO(start_scratch(searcher), fail);
    sl_replicas_make(index);
    *out = searcher;
    return SL_OK;
fail:
    sl_searcher_free(searcher);
    return status;
}

void sl_searcher_free(sl_searcher *searcher) {
    if (!searcher) return;
    sl_allocator allocator = searcher->graph->allocator;
    sl_mem_free(&allocator, searcher->top.entries, searcher->walk.max_ef * sizeof(sl_top_entry));
    sl_mem_free(&allocator, searcher->candidate, searcher->graph->codec.dim * sizeof(float));
    sl_mem_free(&allocator, searcher->scratch, searcher->scratch_size);
    sl_mem_free(&allocator, searcher->start_scratch, searcher->start_scratch_size);
    sl_stream_free(&searcher->stream);
    sl_within_free(&searcher->within, &allocator);
    sl_walk_free(&searcher->walk);
    sl_mem_free(&allocator, searcher->view, sizeof *searcher->view);
    sl_mem_free(&allocator, searcher, sizeof *searcher);
}

void sl_searcher_limit(sl_searcher *searcher, size_t deepest) {
    searcher->deepest = deepest;
}

size_t sl_searcher_room(const sl_searcher *searcher) {
    return searcher->walk.max_ef;
}

size_t sl_searcher_depth(const sl_searcher *searcher) {
    return searcher->walk.depth;
}

void sl_searcher_write(const sl_searcher *searcher, size_t k, int nodes, uint64_t *ids, float *scores) {
    const sl_graph *graph = searcher->graph;
    const sl_top *top = &searcher->top;
    for (size_t i = 0; i < k; i++) {
        int found = i < top->size;
        uint64_t node = found ? top->entries[i].id : SL_NO_ID;
        ids[i] = found && !nodes ? sl_id_of(graph, (uint32_t)node) : node;
        if (!scores) continue;
        scores[i] = found ? sl_score_of(graph, top->entries[i].score) : NAN;
    }
}

sl_status sl_one_query_check(const sl_search_params *params) {
    if (!params->filters) return SL_OK;
    return sl_fail(SL_EINVAL, "filters are given to one query; give its filter as `filter`");
}

sl_status sl_search_check(const sl_graph *graph, sl_dtype dtype, size_t k, const sl_search_params *params) {
    if (k == 0 || k > SL_MAX_EF) return sl_fail(SL_EINVAL, "k is %zu; give 1 to %u", k, SL_MAX_EF);
    if (params->ef == 0 || params->ef > SL_MAX_EF)
        return sl_fail(SL_EINVAL, "ef is %zu; give 1 to %u", params->ef, SL_MAX_EF);
    if (!(params->stop >= 0)) return sl_fail(SL_EINVAL, "stop is %g; give 0 for none, or more", params->stop);
    SL_TRY(sl_accept_check(params));
    if (params->filter && params->filters)
        return sl_fail(SL_EINVAL, "filter and filters are both given; give one for all queries, or one a query");
    if (params->has_threshold && isnan(params->threshold)) return sl_fail(SL_EINVAL, "threshold is NaN; give a score");
    if ((unsigned)params->strategy > SL_FILTER_HOPS)
        return sl_fail(SL_EINVAL, "strategy %d is unknown", (int)params->strategy);
    if (params->group_size && !sl_has(graph, SL_ARRAY_KEYS))
        return sl_fail(SL_EINVAL,
                       "group_size is %zu, and the index has no keys to group by; make it with sl_index_params.keys",
                       params->group_size);
    return sl_codec_accepts(&graph->codec, dtype);
}

/* Takes the copies that the search reads. A search takes them once, so that it reads the same memory to its end. */
static void take_copies(sl_walk *walk) {
    const sl_graph *graph = walk->graph;
    const sl_dram_copy *tier = sl_dram_copy_now(graph);
    walk->upper = sl_upper_here(graph);
    if (tier && walk->upper == &graph->upper) walk->upper = &tier->upper;
    walk->walked = tier ? &tier->walked : sl_codec_of_walks(graph);
}

static sl_status probe(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                       const sl_search_params *params) {
    sl_walk *walk = &searcher->walk;
    size_t keep = sl_rerank_count(walk->graph, k, params);
    uint8_t *scratch;
    if (keep > SL_MAX_EF) keep = SL_MAX_EF;
    SL_TRY(sl_searcher_scratch(searcher, sl_probe_scratch(walk->graph), &scratch));
    SL_TRY(sl_walk_deepen(walk, keep));
    sl_probe(walk, query, dtype, params, keep, scratch);
    return SL_OK;
}

void sl_searcher_look(sl_searcher *searcher) {
    if (!searcher->view) return;
    searcher->view->tuned = searcher->of->graph.tuned;
    searcher->view->tuned_count = searcher->of->graph.tuned_count;
    sl_view_follow(searcher->of, searcher->view);
}

/* Finds what may be returned, where not every node may. */
static void find_allowed(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                         const sl_search_params *params) {
    const sl_graph *graph = searcher->graph;
    sl_filtered filtered = {.walk = &searcher->walk,
                            .params = params,
                            .query = query,
                            .dtype = dtype,
                            .k = k,
                            .ranked = sl_rerank_count(graph, k, params),
                            .deepest = searcher->deepest,
                            .scratch = searcher->start_scratch};
    sl_filter_strategy used = sl_filtered_find(&filtered);
    if (params->filter) searcher->used = used;
}

static sl_status find(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                      const sl_search_params *params) {
    const sl_graph *graph = searcher->graph;
    sl_walk *walk = &searcher->walk;
    int scans = sl_scan_serves(graph, params);
    if (scans) SL_TRY(probe(searcher, query, dtype, k, params));
    /* A scan may find too little where much is deleted. */
    if (scans && (walk->pool.size >= k || !graph->dead_count)) return SL_OK;
    SL_TRY(start_scratch(searcher));
    if (graph->dead_count || sl_accept_given(params)) {
        find_allowed(searcher, query, dtype, k, params);
        return SL_OK;
    }
    const sl_allowed all = sl_allowed_all(graph);
    sl_widen(walk, &(sl_widening){.params = params,
                                  .allowed = &all,
                                  .k = k,
                                  .wanted = sl_rerank_count(graph, k, params),
                                  .near = sl_start_near(walk, query, dtype, searcher->start_scratch)});
    return SL_OK;
}

sl_status sl_searcher_prepare(sl_searcher *searcher, const void *query, sl_dtype dtype,
                              const sl_search_params *params) {
    const sl_graph *graph = searcher->graph;
    sl_walk *walk = &searcher->walk;
    SL_TRY(sl_vector_check(graph->codec.metric, dtype, query, graph->codec.dim));
    /* This allocates once after the index has grown. From then on a search allocates nothing. */
    SL_TRY(sl_visited_cover(&walk->visited, &graph->allocator, graph->n));
    take_copies(walk);
    walk->evaluations = walk->expansions = 0;
    walk->most = params->max_visits ? params->max_visits : SIZE_MAX;
    walk->pool.size = 0;
    searcher->used = SL_FILTER_AUTO;
    if (params->filter) SL_TRY(sl_filter_check(params->filter, searcher->of, graph));
    if (graph->n) sl_walk_ask(walk, query, dtype, SL_ASK_BOTH);
    return SL_OK;
}

sl_status sl_searcher_start(sl_searcher *searcher, const void *query, sl_dtype dtype, sl_range *near) {
    SL_TRY(start_scratch(searcher));
    *near = sl_start_near(&searcher->walk, query, dtype, searcher->start_scratch);
    return SL_OK;
}

sl_status sl_searcher_stream(sl_searcher *searcher, const void *query, sl_dtype dtype, const sl_search_params *params) {
    sl_walk *walk = &searcher->walk;
    SL_TRY(start_scratch(searcher));
    sl_range start = sl_start_near(walk, query, dtype, searcher->start_scratch);
    if (start.first >= start.end) start = sl_walk_from(sl_walk_descend(walk, sl_entry_in(walk->graph, walk->upper), 0));
    return sl_stream_begin(&searcher->stream, walk, params, start);
}

/* Searches the index as it was looked at last. */
static sl_status run(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                     const sl_search_params *params) {
    SL_TRY(sl_searcher_prepare(searcher, query, dtype, params));
    if (searcher->graph->n && (params->group_size || sl_ids_repeat(searcher->graph))) {
        SL_TRY(sl_grouped_find(searcher, query, dtype, k, params));
        if (params->has_threshold) sl_cut_off(searcher, params->threshold);
        return SL_OK;
    }
    if (searcher->graph->n) SL_TRY(find(searcher, query, dtype, k, params));
    sl_rank(searcher, query, k, params);
    return SL_OK;
}

sl_status sl_searcher_run(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                          const sl_search_params *params) {
    sl_searcher_look(searcher);
    return run(searcher, query, dtype, k, params);
}

void sl_searcher_ask(sl_searcher *searcher, const void *query, sl_dtype dtype) {
    sl_walk_ask(&searcher->walk, query, dtype, SL_ASK_WALK);
}

const sl_query_code *sl_searcher_query(const sl_searcher *searcher) {
    return &searcher->walk.query;
}

void sl_searcher_rank(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                      const sl_search_params *params, const sl_scan *found) {
    take_copies(&searcher->walk);
    sl_walk_ask(&searcher->walk, query, dtype, SL_ASK_RANK);
    sl_pool_fill(&searcher->walk.pool, found->scores, found->ids, found->count);
    sl_rank(searcher, query, k, params);
}

sl_status sl_searcher_scratch(sl_searcher *searcher, size_t size, uint8_t **out) {
    SL_TRY(renew(searcher, size, &searcher->scratch, &searcher->scratch_size));
    *out = searcher->scratch;
    return SL_OK;
}

size_t sl_searcher_results(const sl_searcher *searcher) {
    return searcher->top.size;
}

void sl_searcher_count(const sl_searcher *searcher, sl_search_stats *stats) {
    stats->evaluations += searcher->walk.evaluations;
    stats->expansions += searcher->walk.expansions;
    stats->exact += searcher->used == SL_FILTER_EXACT;
    stats->partitions += searcher->used == SL_FILTER_PARTITIONS;
    stats->walks += searcher->used == SL_FILTER_WALK;
    stats->hops += searcher->used == SL_FILTER_HOPS;
    stats->cut += (size_t)sl_walk_is_spent(&searcher->walk);
}

void sl_searcher_add_stats(const sl_searcher *searcher, sl_search_stats *stats) {
    stats->results += searcher->top.size;
    sl_searcher_count(searcher, stats);
}

size_t sl_search_threads(size_t nq, size_t asked) {
    size_t threads = nq > 1 ? sl_thread_count(asked) : 1;
    return threads < nq ? threads : nq > 1 ? nq : 1;
}

/* As they are to be used, also where a recall was asked for, of searches for nq queries. */
sl_status sl_search_params_read(const sl_graph *graph, size_t nq, size_t k, const sl_search_params *given,
                                sl_search_params *mine) {
    sl_search_params_init(mine);
    SL_TRY(sl_params_in(mine, sizeof *mine, given, "sl_search_params_init"));
    if (mine->recall == 0) return SL_OK;
    return sl_settings_apply(graph, k, nq / sl_search_threads(nq, mine->threads), mine);
}

sl_status sl_searcher_find(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                           const sl_search_params *params, sl_found *found, sl_search_stats *stats) {
    sl_search_params mine;
    sl_searcher_look(searcher);
    SL_TRY(sl_search_params_read(searcher->graph, 1, k, params, &mine));
    SL_TRY(sl_one_query_check(&mine));
    SL_TRY(sl_search_check(searcher->graph, dtype, k, &mine));
    if (k > searcher->walk.max_ef || mine.ef > searcher->walk.max_ef)
        return sl_fail(SL_EINVAL, "k %zu and ef %zu%s; this searcher was made for %zu: create a larger one", k, mine.ef,
                       mine.recall > 0 ? ", tuned for this recall" : "", searcher->walk.max_ef);
    SL_TRY(run(searcher, query, dtype, k, &mine));
    *found = (sl_found){searcher->top.entries, searcher->top.size};
    if (stats) {
        *stats = (sl_search_stats){0};
        sl_searcher_add_stats(searcher, stats);
    }
    return SL_OK;
}

void sl_searcher_rerank(sl_searcher *searcher, const void *query, size_t k, size_t rerank, sl_found *found) {
    sl_rank(searcher, query, k, &(sl_search_params){.rerank = rerank});
    *found = (sl_found){searcher->top.entries, searcher->top.size};
}

sl_status sl_searcher_search(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                             const sl_search_params *params, uint64_t *ids, float *scores, sl_search_stats *stats) {
    if (!searcher || !query || !ids) return sl_fail(SL_EINVAL, "searcher, query or ids is NULL");
    sl_found found;
    SL_TRY(sl_searcher_find(searcher, query, dtype, k, params, &found, stats));
    sl_searcher_write(searcher, k, 0, ids, scores);
    return SL_OK;
}
