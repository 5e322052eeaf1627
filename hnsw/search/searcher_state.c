#include "hnsw/search/searcher_state.h"

#include "distance/codec/vector_check.h"
#include "hnsw/graph/view.h"
#include "hnsw/place/dram_copy.h"
#include "hnsw/place/replicas.h"
#include "hnsw/search/filter.h"
#include "hnsw/search/scan_allowed.h"
#include "hnsw/search/scan_query.h"
#include "hnsw/search/start_nodes.h"

#include <math.h>

/* Replaces a block that is smaller than `size`. The content is lost. */
static sl_status grow_scratch(const sl_searcher *searcher, size_t size, void **block, size_t *has) {
    const sl_allocator *allocator = &searcher->graph->allocator;
    if (size <= *has) return SL_OK;
    sl_mem_free(allocator, *block, *has);
    *block = NULL;
    *has = 0;
    SL_TRY(sl_mem_alloc(allocator, size, block));
    *has = size;
    return SL_OK;
}

sl_status sl_searcher_reserve_start(sl_searcher *searcher) {
    size_t size = sl_start_nodes_scratch(searcher->graph);
    size_t nearest = sl_scan_allowed_scratch(searcher->graph, searcher->walk.max_ef);
    if (nearest > size) size = nearest;
    return grow_scratch(searcher, size, &searcher->start_scratch, &searcher->start_scratch_size);
}

sl_status sl_searcher_scratch(sl_searcher *searcher, size_t size, uint8_t **out) {
    SL_TRY(grow_scratch(searcher, size, &searcher->scratch, &searcher->scratch_size));
    *out = searcher->scratch;
    return SL_OK;
}

sl_status sl_searcher_create(const sl_index *index, size_t max_ef, sl_searcher **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    if (max_ef == 0 || max_ef > SL_MAX_EF) return sl_fail(SL_EINVAL, "max_ef is %zu; give 1 to %u", max_ef, SL_MAX_EF);
    void *block;
    SL_TRY(sl_mem_alloc(&index->graph.allocator, sizeof(sl_searcher), &block));
    sl_searcher *searcher = block;
    searcher->index = index;
    searcher->reader = sl_epochs_join(&index->versions->epochs);
    searcher->filter_max_ef = max_ef;
    searcher->stream.allocator = index->graph.allocator;
    sl_status status;
    searcher->graph = sl_version_enter(index, searcher->reader);
    if (index->published) {
        SL_TRY_GOTO(sl_mem_alloc(&index->graph.allocator, sizeof *searcher->view, &block), fail);
        searcher->view = block;
        *searcher->view = *searcher->graph;
        sl_view_follow(index, searcher->view);
        searcher->graph = searcher->view;
    }
    SL_TRY_GOTO(sl_walk_init(&searcher->walk, searcher->graph, max_ef), fail);
    SL_TRY_GOTO(sl_mem_alloc(&index->graph.allocator, max_ef * sizeof(sl_top_entry), &block), fail);
    searcher->top.entries = block;
    SL_TRY_GOTO(sl_mem_alloc(&index->graph.allocator, index->graph.codec.dim * sizeof(float), &block), fail);
    searcher->decoded = block;
    uint8_t *scratch;
    if (searcher->graph->partitions.count) {
        SL_TRY_GOTO(sl_searcher_scratch(searcher, sl_scan_query_scratch(searcher->graph), &scratch), fail);
    }
    SL_TRY_GOTO(sl_searcher_reserve_start(searcher), fail);
    sl_searcher_exit(searcher);
    sl_replicas_make(index);
    *out = searcher;
    return SL_OK;
fail:
    sl_searcher_exit(searcher);
    sl_searcher_free(searcher);
    return status;
}

void sl_searcher_free(sl_searcher *searcher) {
    if (!searcher) return;
    const sl_index *index = searcher->index;
    sl_allocator allocator = index->graph.allocator;
    SL_FREE_ARRAY(&allocator, searcher->top.entries, searcher->walk.max_ef);
    SL_FREE_ARRAY(&allocator, searcher->decoded, index->graph.codec.dim);
    sl_mem_free(&allocator, searcher->scratch, searcher->scratch_size);
    sl_mem_free(&allocator, searcher->start_scratch, searcher->start_scratch_size);
    sl_candidate_stream_free(&searcher->stream);
    sl_range_hits_free(&searcher->range_hits, &allocator);
    sl_walk_free(&searcher->walk);
    SL_FREE(&allocator, searcher->view);
    sl_epochs_leave(searcher->reader);
    SL_FREE(&allocator, searcher);
}

void sl_searcher_limit_ef(sl_searcher *searcher, size_t max_ef) {
    searcher->filter_max_ef = max_ef;
}

size_t sl_searcher_max_ef(const sl_searcher *searcher) {
    return searcher->walk.max_ef;
}

size_t sl_searcher_pool_ef(const sl_searcher *searcher) {
    return searcher->walk.pool_ef;
}

static void read_graph(sl_searcher *searcher, const sl_graph *graph) {
    searcher->graph = graph;
    if (searcher->walk.graph) searcher->walk.graph = graph;
}

void sl_searcher_enter(sl_searcher *searcher) {
    if (searcher->pinned) {
        read_graph(searcher, searcher->pinned);
        return;
    }
    const sl_graph *graph = sl_version_enter(searcher->index, searcher->reader);
    if (searcher->view) {
        searcher->view->tuned = graph->tuned;
        searcher->view->tuned_count = graph->tuned_count;
        sl_view_follow(searcher->index, searcher->view);
        graph = searcher->view;
    }
    read_graph(searcher, graph);
}

void sl_searcher_exit(sl_searcher *searcher) {
    read_graph(searcher, &searcher->index->graph);
    if (!searcher->pinned) sl_version_exit(searcher->index, searcher->reader);
}

void sl_searcher_pin(sl_searcher *searcher, const sl_graph *graph) {
    searcher->pinned = graph;
}

void sl_searcher_choose_copies(sl_searcher *searcher) {
    sl_walk *walk = &searcher->walk;
    const sl_graph *graph = walk->graph;
    const sl_dram_copy *tier = sl_dram_copy_now(graph);
    walk->upper = sl_upper_here(graph);
    if (tier && walk->upper == &graph->upper) walk->upper = &tier->upper;
    walk->codec = tier ? &tier->walked : sl_codec_of_walks(graph);
}

sl_status sl_searcher_prepare(sl_searcher *searcher, sl_query query, const sl_search_params *params) {
    const sl_graph *graph = searcher->graph;
    sl_walk *walk = &searcher->walk;
    SL_TRY(sl_vector_check(graph->codec.metric, query.dtype, query.vector, graph->codec.dim));
    /* Allocates once after the index has grown. Later searches allocate nothing. */
    SL_TRY(sl_visited_cover(&walk->visited, &graph->allocator, graph->n));
    sl_searcher_choose_copies(searcher);
    walk->evaluations = walk->expansions = 0;
    walk->max_evaluations = params->max_visits ? params->max_visits : SIZE_MAX;
    walk->pool.size = 0;
    walk->beam_score = -INFINITY;
    searcher->strategy = SL_FILTER_AUTO;
    if (params->filter) SL_TRY(sl_filter_check(params->filter, searcher->index, graph));
    if (graph->n) sl_walk_set_query(walk, query, SL_ENCODE_BOTH);
    return SL_OK;
}

sl_status sl_searcher_start_nodes(sl_searcher *searcher, sl_query query, sl_range *start) {
    SL_TRY(sl_searcher_reserve_start(searcher));
    *start = sl_start_nodes(&searcher->walk, query, searcher->start_scratch);
    return SL_OK;
}

sl_status sl_searcher_begin_stream(sl_searcher *searcher, sl_query query, const sl_search_params *params) {
    sl_walk *walk = &searcher->walk;
    SL_TRY(sl_searcher_reserve_start(searcher));
    sl_range start = sl_start_nodes(walk, query, searcher->start_scratch);
    if (start.first >= start.end)
        start = sl_range_of_id(sl_walk_descend(walk, sl_entry_in(walk->graph, walk->upper), 0));
    return sl_candidate_stream_begin(&searcher->stream, walk, params, start);
}

void sl_searcher_set_query(sl_searcher *searcher, sl_query query) {
    sl_walk_set_query(&searcher->walk, query, SL_ENCODE_WALK);
}

const sl_query_code *sl_searcher_query(const sl_searcher *searcher) {
    return &searcher->walk.query;
}
