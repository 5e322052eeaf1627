/*
 * The candidates of a walk: those among the `limit` best seen so far. The walk asks again and again for the best of
 * them that is unexpanded.
 *
 * Candidates lie in order of arrival. Beside them lies the best open score of every sixteen, and the best of every
 * sixteen of these. Taking in what a turn has scored is a comparison and a store of what passed. The best is found by
 * three maxima: there is no search for a place, and nothing is moved. In the tiers with wide registers hardly a branch
 * depends on a score. Candidates behind the `limit` best are dropped only when there is no room for another turn.
 * Tells whether a candidate has `limit` better ones before it is counted when the walk asks for it, and only once as
 * many have been expanded.
 */
#ifndef SL_HNSW_SEARCH_POOL_H
#define SL_HNSW_SEARCH_POOL_H

#include "distance/kernels.h"

#include <string.h>

#define SL_POOL_NONE 0xffffffffu    /* no id */
#define SL_TURN_IDS  (5 * SL_MAX_M) /* two full lists, and some more */

typedef struct sl_pool {
    const sl_candidate_kernels *kernels;
    sl_candidates all;
    size_t limit, room, expanded;
    float popped_score; /* the score of the candidate that was popped last */

    /* The result of sl_pool_finish, best first where `sorted`. */
    uint64_t *keys, *spare;
    size_t size;
    int sorted;
    uint64_t *block; /* in which both lie */
} sl_pool;

/* Makes room for walks with limits up to max_limit. */
sl_status sl_pool_init(sl_pool *pool, const sl_allocator *allocator, const sl_candidate_kernels *kernels,
                       size_t max_limit);
void sl_pool_free(sl_pool *pool, const sl_allocator *allocator, size_t max_limit);

/* Makes room for a limit of `more` in place of `max_limit`. The candidates stay, and the limit becomes `more`; keys are
 * lost. On failure nothing is changed. */
sl_status sl_pool_grow(sl_pool *pool, const sl_allocator *allocator, size_t max_limit, size_t more);

/* Empties the pool. best_limit 0: nobody will ask for sl_pool_kth_score. An id is offered at most once in a walk. */
void sl_pool_start(sl_pool *pool, size_t limit, size_t best_limit);

/* Takes those of n <= SL_TURN_IDS candidates that may be among the best. NaN and -INFINITY never are. */
void sl_pool_offer(sl_pool *pool, const float *scores, const uint32_t *ids, size_t n);

/* Leaves the best, `most` or fewer, in keys, in any order. The walk is over. */
void sl_pool_finish(sl_pool *pool, size_t most);

/* The same of the keys that are left, where some were taken out since. */
void sl_pool_keep_best(sl_pool *pool, size_t most);

/* Leaves candidates that no walk has found in keys, in any order. Parameters: n is at most a quarter above the limit
 * that the pool has room for. */
void sl_pool_set(sl_pool *pool, const float *scores, const uint32_t *ids, size_t n);

/* Sorts keys, best first. Candidates that are scored anew need no order. */
void sl_pool_sort(sl_pool *pool);

/* Returns a key of a candidate. Keys order as scores do, larger ids first among equals: 0 and -0 are one score. */
static inline uint64_t sl_pool_key(float score, uint32_t id) {
    uint32_t bits;
    score += 0.0f;
    memcpy(&bits, &score, sizeof bits);
    bits ^= bits >> 31 ? 0xffffffffu : 0x80000000u;
    return (uint64_t)bits << 32 | id;
}

static inline float sl_pool_score(uint64_t key) {
    uint32_t bits = (uint32_t)(key >> 32);
    bits ^= bits >> 31 ? 0x80000000u : 0xffffffffu;
    float score;
    memcpy(&score, &bits, sizeof score);
    return score;
}

static inline uint32_t sl_pool_id(uint64_t key) {
    return (uint32_t)key;
}

/* Returns the score of the best_limit-th best, or of the SL_BEST_SCORES-th; -INFINITY while there are not as many. */
static inline float sl_pool_kth_score(const sl_pool *pool) {
    return pool->all.best_scores[pool->all.best_count - 1];
}

/* Returns the place of the best unexpanded candidate, which counts as expanded from then on; SL_NO_PLACE where there is
 * none. */
static inline size_t sl_pool_pop_place(sl_pool *pool) {
    size_t place = pool->kernels->best(&pool->all);
    if (place != SL_NO_PLACE) pool->popped_score = pool->all.scores[place];
    return place;
}

/* Returns the best unexpanded candidate, which counts as expanded from then on; SL_POOL_NONE where `limit` better ones
 * are known. */
static inline uint32_t sl_pool_pop(sl_pool *pool) {
    size_t place = sl_pool_pop_place(pool);
    if (place == SL_NO_PLACE) return SL_POOL_NONE;
    if (pool->expanded++ >= pool->limit &&
        pool->kernels->at_least(pool->all.scores, pool->all.count, pool->popped_score) > pool->limit)
        return SL_POOL_NONE;
    return pool->all.ids[place];
}

#endif
