#include "hnsw/search/grouped.h"

#include <string.h>

/* Candidates are settled to so many eighths of the depth at which the k-th result was met. Candidates there are as sure
 * as those within ef. */
enum { EIGHTHS = 11 };
/* The depth grows by a quarter at least, and at most to so many times, where too few results were met. */
enum { MOST_GROWTH = 2 };

/* How many candidates of each key were counted. Each key that is counted has one at least. */
typedef struct tally {
    uint64_t *keys;
    size_t *counts; /* 0: a free place */
    size_t places;  /* a power of two */
} tally;

typedef struct grouping {
    sl_searcher *searcher;
    const void *query;
    size_t k, size; /* size: results of one key at most */
    tally tally;
    sl_top ranked;
} grouping;

static size_t places_for(size_t keys) {
    size_t places = 16;
    while (places < 2 * keys)
        places *= 2;
    return places;
}

static size_t *count_of(tally *t, uint64_t key) {
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash ^ hash >> 32) & (t->places - 1);
    while (t->counts[at] && t->keys[at] != key)
        at = (at + 1) & (t->places - 1);
    t->keys[at] = key;
    return &t->counts[at];
}

/* Empties the tally, and makes room for so many keys. */
static sl_status start_tally(grouping *g, size_t keys) {
    tally *t = &g->tally;
    uint8_t *scratch;
    t->places = places_for(keys);
    SL_TRY(sl_searcher_scratch(g->searcher, t->places * (sizeof *t->keys + sizeof *t->counts), &scratch));
    t->keys = (uint64_t *)(void *)scratch;
    t->counts = (size_t *)(void *)(t->keys + t->places);
    memset(t->counts, 0, t->places * sizeof *t->counts);
    return SL_OK;
}

static uint64_t key_of(const grouping *g, size_t i) {
    const sl_stream *stream = &g->searcher->stream;
    return sl_key_of(g->searcher->graph, sl_pool_id(stream->settled[i]));
}

/* Asks for the keys of the settled candidates, which lie anywhere. */
static void prefetch_keys(const grouping *g) {
    const sl_stream *stream = &g->searcher->stream;
    for (size_t i = 0; i < stream->count; i++)
        sl_prefetch(sl_array_row(g->searcher->graph, SL_ARRAY_KEYS, sl_pool_id(stream->settled[i])), sizeof(uint64_t));
}

/* Counts the results among the settled candidates, up to k. *depth: how many candidates hold them. */
static sl_status count_results(grouping *g, size_t *results, size_t *depth) {
    size_t i = 0;
    SL_TRY(start_tally(g, g->k));
    prefetch_keys(g);
    for (*results = 0; i < g->searcher->stream.count && *results < g->k; i++) {
        size_t *count = count_of(&g->tally, key_of(g, i));
        *results += *count < g->size;
        *count += *count < g->size;
    }
    *depth = i;
    return SL_OK;
}

static size_t deeper(size_t depth, size_t results, size_t k) {
    size_t least = depth + depth / 4 + 1, most = MOST_GROWTH * depth;
    size_t needed = results ? depth / results * k : most;
    return needed < least ? least : needed < most ? needed : most;
}

/* Settles candidates until k results are among the first *depth of them, and as many more as make these sure. */
static sl_status settle_enough(grouping *g, size_t ef, size_t *depth) {
    sl_searcher *searcher = g->searcher;
    size_t wanted = ef > g->k ? ef : g->k, results;
    for (;;) {
        SL_TRY(sl_stream_gather(&searcher->stream, &searcher->walk, wanted));
        SL_TRY(count_results(g, &results, depth));
        if (searcher->stream.count < wanted) return SL_OK;
        size_t sure = *depth * EIGHTHS / 8;
        if (results == g->k && sure <= wanted) return SL_OK;
        wanted = results == g->k ? sure : deeper(wanted, results, g->k);
    }
}

/* Moves those that may be results to the front of the settled candidates: those that a search for `depth` ranks, less
 * what a search for one key's results would not rank. */
static sl_status choose(grouping *g, const sl_search_params *params, size_t depth) {
    sl_stream *stream = &g->searcher->stream;
    size_t chosen = 0, among = sl_rerank_count(g->searcher->graph, depth, params);
    const sl_search_params own = {0};
    size_t spare = sl_rerank_count(g->searcher->graph, g->size, &own);
    if (among > stream->count) among = stream->count;
    SL_TRY(start_tally(g, among));
    for (size_t i = 0; i < among; i++) {
        size_t *count = count_of(&g->tally, key_of(g, i));
        if (*count < spare) stream->settled[chosen++] = stream->settled[i];
        *count += *count < spare;
    }
    stream->count = chosen;
    return SL_OK;
}

/* Ranks what may be a result, best first. */
static void rank(grouping *g) {
    sl_searcher *searcher = g->searcher;
    size_t most = searcher->walk.max_ef, taken;
    while ((taken = sl_stream_take(&searcher->stream, &searcher->walk, most)) > 0) {
        sl_found found;
        sl_searcher_rerank(searcher, g->query, taken, taken, &found);
        sl_top_merge(&g->ranked, found.nodes, found.count);
    }
}

static sl_status keep_results(grouping *g) {
    sl_top *top = &g->searcher->top;
    SL_TRY(start_tally(g, g->k));
    top->size = 0;
    for (size_t i = 0; i < g->ranked.size && top->size < g->k; i++) {
        const sl_top_entry entry = g->ranked.entries[i];
        size_t *count = count_of(&g->tally, sl_key_of(g->searcher->graph, (uint32_t)entry.id));
        if (*count == g->size) continue;
        ++*count;
        top->entries[top->size++] = entry;
    }
    return SL_OK;
}

/* Finds and ranks for the query that the stream has begun. */
static sl_status find(grouping *g, const sl_search_params *params) {
    const sl_allocator *allocator = &g->searcher->graph->allocator;
    size_t depth;
    void *block;
    SL_TRY(settle_enough(g, params->ef, &depth));
    SL_TRY(choose(g, params, depth));
    g->ranked.k = g->searcher->stream.count;
    SL_TRY(sl_mem_take(allocator, g->ranked.k * sizeof(sl_top_entry), &block));
    g->ranked.entries = block;
    rank(g);
    sl_status status = keep_results(g);
    sl_mem_free(allocator, block, g->ranked.k * sizeof(sl_top_entry));
    return status;
}

sl_status sl_grouped_find(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                          const sl_search_params *params) {
    grouping g = {.searcher = searcher, .query = query, .k = k};
    g.size = params->group_size < k ? params->group_size : k;
    SL_TRY(sl_searcher_stream(searcher, query, dtype, params));
    sl_status status = find(&g, params);
    if (params->filter) searcher->used = searcher->stream.scanned ? SL_FILTER_EXACT : SL_FILTER_WALK;
    sl_stream_end_query(&searcher->stream);
    return status;
}
