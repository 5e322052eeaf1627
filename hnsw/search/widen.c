#include "hnsw/search/widen.h"

#include "hnsw/graph/entry.h"
#include "hnsw/search/allowed.h"

/* Returns how deep a walk goes so that `left` are left of it, where a share of what it meets may be returned. */
static size_t depth_for(const sl_walk *walk, double share, size_t left, size_t least) {
    size_t n = walk->graph->n, most = SL_MAX_EF < n ? SL_MAX_EF : n;
    double depth = share > 0 ? (double)left / share : (double)most;
    if (depth <= (double)least || least >= most) return least;
    return depth < (double)most ? (size_t)depth : most;
}

static void walk_from(sl_walk *walk, sl_range near, size_t depth) {
    if (near.first >= near.end) near = sl_walk_from(sl_walk_descend(walk, sl_entry_in(walk->graph, walk->upper), 0));
    sl_walk_layer(walk, 0, near, depth);
}

/* Makes a walk among a few deleted nodes that may end early. The k-th best that counts must not be deleted, but the
 * walk goes by the last that it notes. The walk holds where k of the noted nodes, or all where k is more, are not
 * deleted. Returns 0 where it does not hold. */
static int stops_rightly(sl_walk *walk, const sl_widening *how, size_t depth) {
    sl_pool *pool = &walk->pool;
    size_t noted = 0, needed = how->k < SL_NEAR ? how->k : SL_NEAR;
    walk->stop = (float)how->params->stop;
    walk->near = SL_NEAR;
    walk_from(walk, how->near, depth);
    walk->stop = 0;
    float near = sl_pool_near(pool);
    sl_pool_finish(pool, depth);
    sl_accept_pool(walk->graph, how->params, how->allowed, pool);
    for (size_t i = 0; i < pool->size; i++)
        noted += sl_pool_score(pool->keys[i]) >= near;
    return noted >= needed && pool->size >= how->k;
}

/* Walks where every node may be returned. */
static int walk_all(sl_walk *walk, const sl_widening *how, size_t ef) {
    walk->stop = (float)how->params->stop;
    walk->near = how->k;
    walk_from(walk, how->near, ef);
    sl_pool_finish(&walk->pool, how->wanted < ef ? how->wanted : ef);
    return 1;
}

int sl_widen(sl_walk *walk, const sl_widening *how) {
    const sl_search_params *params = how->params;
    size_t ef = params->ef > how->k ? params->ef : how->k, wanted = how->wanted < ef ? how->wanted : ef;
    int all = !sl_accept_given(params) && !how->allowed->dead;
    /* Searchers that scan have room for what they rank. They walk where a scan found too few. */
    if (ef > walk->depth && sl_walk_deepen(walk, ef) != SL_OK) ef = walk->depth;
    if (all) return walk_all(walk, how, ef);
    walk->stop = 0;
    /* Settings are tuned for an ef that counts what is not deleted. */
    const int only_deleted = !sl_accept_given(params);
    size_t left = only_deleted ? ef : wanted > how->k ? wanted : how->k;
    size_t depth = depth_for(walk, how->share, left, ef), deepest = how->deepest > depth ? how->deepest : depth;
    if (sl_walk_deepen(walk, depth) != SL_OK) return 0;
    if (params->stop > 0 && sl_accept_stops(walk->graph, params) && stops_rightly(walk, how, depth)) return 1;
    for (;;) {
        walk_from(walk, how->near, depth);
        sl_pool_finish(&walk->pool, depth);
        size_t seen = walk->pool.size;
        sl_accept_pool(walk->graph, params, how->allowed, &walk->pool);
        if (sl_accept_enough(walk->pool.size, only_deleted ? ef : seen, how->k, wanted) || sl_walk_is_spent(walk)) {
            sl_pool_narrow(&walk->pool, wanted);
            return 1;
        }
        if (seen < depth || depth >= deepest) return 0;
        /* The share left tells how deep a walk must go, unless few are refused: these may all lie near. */
        size_t found = walk->pool.size, further = found ? 2 * depth : 4 * depth;
        if (!how->rare && depth_for(walk, (double)found / (double)seen, how->k, 0) > deepest) return 0;
        depth = further < deepest ? further : deepest;
        if (sl_walk_deepen(walk, depth) != SL_OK) return 0;
    }
}
