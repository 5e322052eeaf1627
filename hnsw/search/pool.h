/*
 * The candidate pool of a walk: the `limit` best candidates seen so far. The walk pops the best unexpanded candidate
 * again and again.
 *
 * Candidates lie in order of arrival. `open` has the scores of the unexpanded ones, `tops` the best of each 16 of
 * `open`, and `peaks` the best of each 16 of `tops`. Offering compares a turn's scores with the threshold and appends
 * the better ones. Finding the best candidate takes three maxima. No step searches or moves candidates. On tiers with
 * wide registers, hardly a branch depends on a score. The pool drops candidates behind the `limit` best only when it
 * has no room for another turn.
 *
 * After `limit` expansions, each pop counts the better candidates. It ends the walk if there are `limit` of them.
 */
#ifndef SL_HNSW_SEARCH_POOL_H
#define SL_HNSW_SEARCH_POOL_H

#include "distance/kernels.h"

#include <string.h>

#define SL_POOL_NONE 0xffffffffu    /* no id */
#define SL_TURN_IDS  (5 * SL_MAX_M) /* two full lists, and some more */

typedef struct sl_pool {
    const sl_candidate_kernels *kernels;
    sl_candidates candidates;
    size_t limit, room, expanded;
    float popped_score; /* score of the candidate popped last */

    /* The result of sl_pool_finish, best first if `sorted`. */
    uint64_t *keys, *spare;
    size_t size;
    int sorted;
    uint64_t *block; /* one block, which holds keys and spare */
} sl_pool;

/* Allocates room for limits up to max_limit. Errors: SL_ENOMEM. */
sl_status sl_pool_init(sl_pool *pool, const sl_allocator *allocator, const sl_candidate_kernels *kernels,
                       size_t max_limit);
void sl_pool_free(sl_pool *pool, const sl_allocator *allocator, size_t max_limit);

/* Raises the room and the limit from max_limit to `more`. The candidates stay, the keys are lost. On failure nothing
 * changes.
 * Errors: SL_ENOMEM. */
sl_status sl_pool_grow(sl_pool *pool, const sl_allocator *allocator, size_t max_limit, size_t more);

/* Empties the pool. During a walk, the caller offers each id at most once.
 * Parameters: best_limit: the rank whose score sl_pool_kth_score returns; 0: the caller doesn't call it. */
void sl_pool_start(sl_pool *pool, size_t limit, size_t best_limit);

/* Offers n candidates, at most SL_TURN_IDS. Those with a score above the threshold enter. NaN and -INFINITY never
 * enter. */
void sl_pool_offer(sl_pool *pool, const float *scores, const uint32_t *ids, size_t n);

/* Ends the walk: leaves the `most` best candidates, or fewer, in `keys`, in any order. */
void sl_pool_finish(sl_pool *pool, size_t most);

/* Keeps the `most` best of `keys`, after some were removed. */
void sl_pool_keep_best(sl_pool *pool, size_t most);

/* Sets `keys` to candidates that come from a scan, in any order.
 * Parameters: n: at most 1.25 times the limit that the pool has room for. */
void sl_pool_set(sl_pool *pool, const float *scores, const uint32_t *ids, size_t n);

/* Sorts `keys`, best first. Not needed if all candidates are scored again. */
void sl_pool_sort(sl_pool *pool);

/* Returns a candidate's key. Larger keys are better, as larger scores are. Among equal scores the larger id is better.
 * 0 and -0 are equal. */
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

/* Returns the best_limit-th best score, or the SL_BEST_SCORES-th if best_limit is larger. Returns -INFINITY while the
 * pool has had fewer candidates. */
static inline float sl_pool_kth_score(const sl_pool *pool) {
    return pool->candidates.best_scores[pool->candidates.best_count - 1];
}

/* Marks the best unexpanded candidate as expanded and returns its place; SL_NO_PLACE if there is none. */
static inline size_t sl_pool_pop_place(sl_pool *pool) {
    size_t place = pool->kernels->best(&pool->candidates);
    if (place != SL_NO_PLACE) pool->popped_score = pool->candidates.scores[place];
    return place;
}

/* Marks the best unexpanded candidate as expanded and returns it. Returns SL_POOL_NONE if there is none, or if `limit`
 * candidates are better. */
static inline uint32_t sl_pool_pop(sl_pool *pool) {
    size_t place = sl_pool_pop_place(pool);
    if (place == SL_NO_PLACE) return SL_POOL_NONE;
    if (pool->expanded++ >= pool->limit &&
        pool->kernels->at_least(pool->candidates.scores, pool->candidates.count, pool->popped_score) > pool->limit)
        return SL_POOL_NONE;
    return pool->candidates.ids[place];
}

#endif
