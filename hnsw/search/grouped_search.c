#include "hnsw/search/grouped_search.h"

#include "base/key_counts.h"
#include "hnsw/search/rerank.h"

/* A search settles candidates to eleven eighths of the depth at which it finds the k-th result. The results up to that
 * depth are then as sure as in a search with this ef. */
enum { EIGHTHS = 11 };
/* While there are too few results, each round makes the depth at least a quarter larger and at most twice as large. */
enum { MAX_GROWTH = 2 };

/* The most candidates of one id, and of one key; 0: no limit. */
typedef struct limits {
    size_t id, key;
} limits;

typedef struct grouped_search {
    sl_searcher *searcher;
    sl_query query;
    size_t k;
    limits results;
    sl_key_counts ids, keys; /* counts of the taken candidates */
    sl_top ranked;
} grouped_search;

/* Resets the counts, with room for `most` ids and keys. */
static sl_status reset_counts(grouped_search *g, size_t most) {
    const size_t places = sl_key_counts_places(most), bytes = sl_key_counts_bytes(places);
    uint8_t *scratch;
    SL_TRY(sl_searcher_scratch(g->searcher, 2 * bytes, &scratch));
    sl_key_counts_start(&g->ids, scratch, places);
    sl_key_counts_start(&g->keys, scratch + bytes, places);
    return SL_OK;
}

/* Takes a candidate if the limits allow it. Returns whether it did. All candidates of an id together count as one
 * candidate of the first one's key. */
static int take_if_within(grouped_search *g, uint32_t node, limits most) {
    const sl_graph *graph = g->searcher->graph;
    size_t no_id = 0, no_key = 0;
    size_t *of_id = most.id ? sl_key_counts_of(&g->ids, sl_id_of(graph, node)) : &no_id;
    size_t *of_key = most.key ? sl_key_counts_of(&g->keys, sl_key_of(graph, node)) : &no_key;
    if ((most.id && *of_id >= most.id) || (most.key && *of_key >= most.key)) return 0;
    *of_key += *of_id == 0;
    ++*of_id;
    return 1;
}

/* Prefetches the ids and keys of the settled candidates, which are scattered. */
static void prefetch_ids_and_keys(const grouped_search *g) {
    const sl_candidate_stream *stream = &g->searcher->stream;
    const sl_graph *graph = g->searcher->graph;
    for (size_t i = 0; i < stream->count; i++) {
        const uint32_t node = sl_pool_id(stream->settled[i]);
        if (g->results.id) sl_id_prefetch(graph, node);
        if (g->results.key) sl_prefetch(sl_array_row(graph, SL_ARRAY_KEYS, node), sizeof(uint64_t));
    }
}

/* Counts the results among the settled candidates, up to k. *depth becomes the number of candidates up to the last of
 * them. */
static sl_status count_results(grouped_search *g, size_t *results, size_t *depth) {
    const sl_candidate_stream *stream = &g->searcher->stream;
    size_t i = 0;
    SL_TRY(reset_counts(g, g->k));
    prefetch_ids_and_keys(g);
    for (*results = 0; i < stream->count && *results < g->k; i++)
        *results += (size_t)take_if_within(g, sl_pool_id(stream->settled[i]), g->results);
    *depth = i;
    return SL_OK;
}

static size_t next_depth(size_t depth, size_t results, size_t k) {
    size_t least = depth + depth / 4 + 1, most = MAX_GROWTH * depth;
    size_t needed = results ? depth / results * k : most;
    return needed < least ? least : needed < most ? needed : most;
}

/* Settles candidates until the first *depth of them give k results, and some more to make these sure. */
static sl_status settle_k_results(grouped_search *g, size_t ef, size_t *depth) {
    sl_searcher *searcher = g->searcher;
    size_t wanted = ef > g->k ? ef : g->k, results;
    for (;;) {
        SL_TRY(sl_candidate_stream_settle(&searcher->stream, &searcher->walk, wanted));
        SL_TRY(count_results(g, &results, depth));
        if (searcher->stream.count < wanted) return SL_OK;
        size_t sure = *depth * EIGHTHS / 8;
        if (results == g->k && sure <= wanted) return SL_OK;
        wanted = results == g->k ? sure : next_depth(wanted, results, g->k);
    }
}

/* Moves the possible results to the front of the settled candidates. These are the candidates that a search for `depth`
 * results re-ranks. It takes no more of an id or a key than a search among that id or key alone would re-rank. */
static sl_status choose_possible(grouped_search *g, const sl_search_params *params, size_t depth) {
    sl_candidate_stream *stream = &g->searcher->stream;
    size_t chosen = 0, among = sl_rerank_count(g->searcher->graph, depth, params);
    const sl_search_params own = {0};
    limits spare = g->results;
    if (spare.id) spare.id = sl_rerank_count(g->searcher->graph, spare.id, &own);
    if (spare.key) spare.key = sl_rerank_count(g->searcher->graph, spare.key, &own);
    if (among > stream->count) among = stream->count;
    SL_TRY(reset_counts(g, among));
    for (size_t i = 0; i < among; i++)
        if (take_if_within(g, sl_pool_id(stream->settled[i]), spare)) stream->settled[chosen++] = stream->settled[i];
    stream->count = chosen;
    return SL_OK;
}

/* Re-ranks the possible results and sorts them, best first. */
static void rerank_possible(grouped_search *g) {
    sl_searcher *searcher = g->searcher;
    size_t most = searcher->walk.max_ef, taken;
    while ((taken = sl_candidate_stream_take(&searcher->stream, &searcher->walk, most)) > 0) {
        sl_results found;
        sl_rerank_again(searcher, g->query.vector, taken, taken, &found);
        sl_top_merge(&g->ranked, found.nodes, found.count);
    }
}

static sl_status keep_results(grouped_search *g) {
    sl_top *top = &g->searcher->top;
    SL_TRY(reset_counts(g, g->k));
    top->size = 0;
    for (size_t i = 0; i < g->ranked.size && top->size < g->k; i++)
        if (take_if_within(g, (uint32_t)g->ranked.entries[i].id, g->results))
            top->entries[top->size++] = g->ranked.entries[i];
    return SL_OK;
}

/* Answers the query whose stream has begun. */
static sl_status answer_query(grouped_search *g, const sl_search_params *params) {
    const sl_allocator *allocator = &g->searcher->graph->allocator;
    size_t depth;
    void *block;
    SL_TRY(settle_k_results(g, params->ef, &depth));
    SL_TRY(choose_possible(g, params, depth));
    g->ranked.k = g->searcher->stream.count;
    SL_TRY(sl_mem_alloc_raw(allocator, g->ranked.k * sizeof(sl_top_entry), &block));
    g->ranked.entries = block;
    rerank_possible(g);
    sl_status status = keep_results(g);
    sl_mem_free(allocator, block, g->ranked.k * sizeof(sl_top_entry));
    return status;
}

sl_status sl_search_grouped(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params) {
    grouped_search g = {.searcher = searcher, .query = query, .k = k};
    g.results.id = sl_ids_repeat(searcher->graph) ? 1 : 0;
    g.results.key = params->group_size < k ? params->group_size : k;
    SL_TRY(sl_searcher_begin_stream(searcher, query, params));
    sl_status status = answer_query(&g, params);
    if (params->filter) searcher->strategy = searcher->stream.scanned ? SL_FILTER_EXACT : SL_FILTER_WALK;
    sl_candidate_stream_end_query(&searcher->stream);
    return status;
}
