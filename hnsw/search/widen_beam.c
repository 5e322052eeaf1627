#include "hnsw/search/widen_beam.h"

#include "hnsw/graph/entry.h"

#include <math.h>

enum { SPREAD = 5 };

/* Returns the ef with which a walk keeps `wanted` allowed candidates, if `share` of its candidates are allowed. At
 * least `least`. */
static size_t ef_for_share(const sl_walk *walk, double share, size_t wanted, size_t least) {
    size_t n = walk->graph->n, most = SL_MAX_EF < n ? SL_MAX_EF : n;
    double ef = share > 0 ? (double)wanted / share : (double)most;
    if (ef <= (double)least || least >= most) return least;
    return ef < (double)most ? (size_t)ef : most;
}

/* Returns how many candidates a walk among tombstones keeps so that k of them are not deleted in nearly all searches:
 * SPREAD standard deviations more than on average. Else half of the searches with k near ef would walk twice. Deleted
 * nodes often lie near one another, so that three standard deviations leave some searches in a hundred. */
static size_t with_spread(const sl_walk *walk, const sl_beam_params *params) {
    const sl_allowed *allowed = params->allowed;
    const size_t n = allowed->n > walk->graph->free_count ? allowed->n - walk->graph->free_count : 0;
    const double all = n ? fmin(1, (double)allowed->count / (double)n) : 1;
    const double share = params->share < all ? params->share : all, k = (double)params->k;
    return params->k + (size_t)ceil(SPREAD * sqrt(k * fmax(0, 1 - share)));
}

/* Returns the ef of a second walk, of a query with more deleted nodes near it than most queries have. `share` of the
 * first walk's candidates are not deleted. */
static size_t ef_among_deleted(const sl_walk *walk, double share, size_t wanted, size_t ef) {
    const size_t wider = ef_for_share(walk, share, wanted + wanted / 8, ef);
    return wider > ef && wider < 2 * ef ? wider : 2 * ef;
}

static void walk_layer_0(sl_walk *walk, sl_range start, size_t ef) {
    if (start.first >= start.end)
        start = sl_range_of_id(sl_walk_descend(walk, sl_entry_in(walk->graph, walk->upper), 0));
    sl_walk_layer(walk, 0, start, ef);
}

/* Walks with a stop, among few tombstones. Returns 0 if the walk may have stopped too early.
 * The stop compares with the SL_BEST_SCORES-th best score, which may be that of a deleted node. The walk is sound if at
 * least k of the best scores belong to nodes that aren't deleted. If k is larger than SL_BEST_SCORES, all of them must.
 */
static int stop_was_sound(sl_walk *walk, const sl_beam_params *params, size_t ef) {
    sl_pool *pool = &walk->pool;
    size_t among_best = 0, needed = params->k < SL_BEST_SCORES ? params->k : SL_BEST_SCORES;
    walk->stop = (float)params->search->stop;
    walk->stop_rank = SL_BEST_SCORES;
    walk_layer_0(walk, params->start, ef);
    walk->stop = 0;
    float last_best = sl_pool_kth_score(pool);
    sl_pool_finish(pool, ef);
    sl_pool_drop_refused(walk->graph, params->search, params->allowed, pool);
    for (size_t i = 0; i < pool->size; i++)
        among_best += sl_pool_score(pool->keys[i]) >= last_best;
    return among_best >= needed && pool->size >= params->k;
}

/* Notes the score below which the walk ended: that of the last candidate of a full beam, or that of its stop. */
static void note_beam(sl_walk *walk, size_t ef) {
    const sl_candidates *candidates = &walk->pool.candidates;
    const float stop_score = walk->stop > 0 ? sl_walk_stop_score(walk) : -INFINITY;
    sl_pool_finish(&walk->pool, ef);
    walk->beam_score = candidates->count < ef ? -INFINITY : candidates->scores[0];
    for (size_t i = 1; i < candidates->count; i++)
        if (candidates->scores[i] < walk->beam_score) walk->beam_score = candidates->scores[i];
    if (stop_score > walk->beam_score) walk->beam_score = stop_score;
}

/* Walks an index whose nodes may all be returned. */
static void walk_unfiltered(sl_walk *walk, const sl_beam_params *params, size_t ef) {
    walk->stop = (float)params->search->stop;
    walk->stop_rank = params->k;
    walk_layer_0(walk, params->start, ef);
    if (walk->notes_beam) note_beam(walk, ef);
    sl_pool_finish(&walk->pool, params->rerank < ef ? params->rerank : ef);
}

int sl_widen_beam(sl_walk *walk, const sl_beam_params *params) {
    const sl_search_params *search = params->search;
    const size_t k = params->k;
    size_t base_ef = search->ef > k ? search->ef : k, rerank = params->rerank < base_ef ? params->rerank : base_ef;
    /* A scan's searcher has room only for the candidates that it re-ranks. It walks if the scan found too few. */
    if (base_ef > walk->pool_ef && sl_walk_reserve(walk, base_ef) != SL_OK) base_ef = walk->pool_ef;
    if (!sl_is_filtered(search) && !params->allowed->some_deleted) {
        walk_unfiltered(walk, params, base_ef);
        return 1;
    }
    walk->stop = 0;
    /* Tuned settings hold for an ef that counts only nodes that are not deleted. */
    const int only_deleted = !sl_is_filtered(search);
    size_t wanted = only_deleted ? base_ef : rerank > k ? rerank : k;
    if (only_deleted && wanted < with_spread(walk, params)) wanted = with_spread(walk, params);
    size_t ef = ef_for_share(walk, params->share, wanted, base_ef), max_ef = params->max_ef > ef ? params->max_ef : ef;
    if (sl_walk_reserve(walk, ef) != SL_OK) return 0;
    if (search->stop > 0 && sl_may_stop_early(walk->graph, search) && stop_was_sound(walk, params, ef)) return 1;
    for (int is_first = 1;;) {
        walk_layer_0(walk, params->start, ef);
        sl_pool_finish(&walk->pool, ef);
        size_t seen = walk->pool.size;
        sl_pool_drop_refused(walk->graph, search, params->allowed, &walk->pool);
        if (sl_has_enough_allowed(walk->pool.size, only_deleted ? base_ef : seen, k, rerank) ||
            sl_walk_is_over_budget(walk)) {
            sl_pool_keep_best(&walk->pool, rerank);
            return 1;
        }
        if (seen < ef || ef >= max_ef) return 0;
        size_t kept = walk->pool.size, wider = kept ? 2 * ef : 4 * ef;
        if (only_deleted && is_first && kept) wider = ef_among_deleted(walk, (double)kept / (double)seen, base_ef, ef);
        is_first = 0;
        /* The share of allowed candidates predicts the ef that a walk needs. It predicts nothing if few nodes are
         * refused, because all of these may lie near the query. */
        if (!params->mostly_allowed && ef_for_share(walk, (double)kept / (double)seen, k, 0) > max_ef) return 0;
        ef = wider < max_ef ? wider : max_ef;
        if (sl_walk_reserve(walk, ef) != SL_OK) return 0;
    }
}
