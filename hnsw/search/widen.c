#include "hnsw/search/widen.h"

#include "hnsw/graph/deleted.h"
#include "hnsw/graph/entry.h"
#include "hnsw/search/accept.h"
#include "hnsw/search/feed.h"

/* A search among nodes, some of which may be deleted. Its ef counts the others. */
typedef struct sl_widening {
    sl_walk *walk;
    const sl_search_params *params;
    size_t k, wanted, deepest;
    sl_range start;
    int whole; /* the last look saw all that can be found */
} sl_widening;

/* Returns how many nodes hold ef that are not deleted, if those are spread evenly. */
static size_t depth_for(const sl_graph *graph, size_t ef) {
    uint64_t depth = (uint64_t)ef * graph->n / sl_undeleted_count(graph);
    if (depth > SL_MAX_EF) depth = SL_MAX_EF;
    return depth < graph->n ? (size_t)depth : graph->n;
}

void sl_widen_all(sl_walk *walk, size_t most) {
    const sl_graph *graph = walk->graph;
    sl_feed feed;
    sl_feed_start(&feed, walk, most);
    for (size_t node = sl_next_undeleted(graph, 0); node < graph->n; node = sl_next_undeleted(graph, node + 1))
        sl_feed_node(&feed, (uint32_t)node);
    sl_feed_end(&feed, most);
}

/* Puts about the best ef that are not deleted into the pool. It walks, or compares all of them. It compares where
 * `all` says so, or where a walk would meet more deleted nodes. Comparing needs no more memory than there is. */
static void look(sl_widening *gathering, size_t ef, int all) {
    sl_walk *walk = gathering->walk;
    const sl_graph *graph = walk->graph;
    size_t depth = depth_for(graph, ef);
    if (sl_undeleted_count(graph) <= depth) all = 1;
    if (sl_walk_deepen(walk, all ? ef : depth) != SL_OK) all = 1;
    if (all) {
        size_t most = ef < walk->depth ? ef : walk->depth;
        sl_widen_all(walk, most);
        gathering->whole = walk->pool.size < most;
        return;
    }
    sl_walk_layer(walk, 0, gathering->start, depth);
    sl_pool_finish(&walk->pool, depth);
    gathering->whole = walk->pool.size < depth;
    sl_pool_undeleted(graph, &walk->pool);
}

/* Makes a walk that may end early. The k-th best that counts must not be deleted, but the walk goes by the last that
 * it notes. The walk holds where k of the noted nodes, or all where k is more, are not deleted. Returns 0 where it
 * does not hold. */
static int stops_rightly(sl_widening *gathering, size_t ef) {
    sl_walk *walk = gathering->walk;
    const sl_graph *graph = walk->graph;
    sl_pool *pool = &walk->pool;
    size_t depth = depth_for(graph, ef), noted = 0, needed = gathering->k < SL_NEAR ? gathering->k : SL_NEAR;
    if (sl_undeleted_count(graph) <= depth || sl_walk_deepen(walk, depth) != SL_OK) return 0;
    walk->stop = (float)gathering->params->stop;
    walk->near = SL_NEAR;
    sl_walk_layer(walk, 0, gathering->start, depth);
    walk->stop = 0;
    float near = sl_pool_near(pool);
    sl_pool_finish(pool, depth);
    sl_pool_undeleted(graph, pool);
    for (size_t i = 0; i < pool->size; i++)
        noted += sl_pool_score(pool->keys[i]) >= near;
    return noted >= needed && pool->size >= gathering->k;
}

/* Looks until as many are found that are not deleted as a search would rank, whatever that takes. `deepest` bounds
 * what a filter wants. */
static void gather_undeleted(sl_widening *gathering, size_t ef) {
    const sl_search_params *params = gathering->params;
    const sl_graph *graph = gathering->walk->graph;
    sl_pool *pool = &gathering->walk->pool;
    const size_t wanted = gathering->wanted, deepest = gathering->deepest;
    if (params->stop > 0 && sl_accept_stops(graph, params) && stops_rightly(gathering, ef)) return;
    for (int all = 0;;) {
        look(gathering, ef, all);
        size_t undeleted = pool->size;
        if (sl_accept_given(params)) sl_accept_pool(graph, params, pool);
        if (gathering->whole || sl_accept_enough(pool->size, ef, gathering->k, wanted)) return;
        if (undeleted >= wanted && ef >= deepest) return;
        if (undeleted < wanted && depth_for(graph, ef) == SL_MAX_EF)
            all = 1;
        else
            ef = undeleted >= wanted && ef > deepest / 2 ? deepest : 2 * ef;
    }
}

/* Walks where nothing is deleted. If a filter leaves too few of a full pool, the walk is made again with a pool of
 * twice the size. The candidates that a smaller pool dropped are lost to it. */
static void gather_any(sl_widening *gathering, size_t ef) {
    sl_walk *walk = gathering->walk;
    const sl_search_params *params = gathering->params;
    const size_t deepest = gathering->deepest, wanted = gathering->wanted;
    /* Searchers that scan have room for what they rank. They come here where a followed file counts fewer nodes as
     * deleted than it did before. */
    if (ef > walk->depth && sl_walk_deepen(walk, ef) != SL_OK) ef = walk->depth;
    /* The walk does not know the k-th best of what a filter leaves. */
    walk->stop = sl_accept_given(params) ? 0 : (float)params->stop;
    walk->near = gathering->k;
    sl_walk_layer(walk, 0, gathering->start, ef);
    if (!sl_accept_given(params)) {
        sl_pool_finish(&walk->pool, wanted);
        return;
    }
    for (;;) {
        sl_pool_finish(&walk->pool, ef);
        size_t seen = walk->pool.size;
        sl_accept_pool(walk->graph, params, &walk->pool);
        if (sl_accept_enough(walk->pool.size, seen, gathering->k, wanted)) return;
        if (seen < ef || ef >= deepest) return;
        ef = ef < deepest / 2 ? 2 * ef : deepest;
        sl_walk_layer(walk, 0, gathering->start, ef);
    }
}

void sl_widen(sl_walk *walk, size_t k, const sl_search_params *params, size_t wanted, size_t deepest, sl_range near) {
    const sl_graph *graph = walk->graph;
    size_t ef = params->ef > k ? params->ef : k;
    sl_widening gathering = {
        .walk = walk, .params = params, .k = k, .wanted = wanted < ef ? wanted : ef, .deepest = deepest, .start = near};
    walk->stop = 0;
    if (near.first >= near.end)
        gathering.start = sl_walk_from(sl_walk_descend(walk, sl_entry_in(graph, walk->upper), 0));
    if (!graph->dead_count)
        gather_any(&gathering, ef);
    else if (sl_undeleted_count(graph))
        gather_undeleted(&gathering, ef);
}
