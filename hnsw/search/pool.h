/*
 * The candidate pool of a walk: the `limit` best candidates seen so far. The walk pops the best unexpanded one again
 * and again.
 *
 * Candidates lie in order of arrival. A second array holds the best unexpanded score of every sixteen, and a third the
 * best of every sixteen of those. To offer a turn's scores is to compare them with the threshold and to append those
 * above it. To find the best is three maxima. Nothing is searched, nothing is moved, and on tiers with wide registers
 * hardly a branch depends on a score. Candidates behind the `limit` best are dropped only when there is no room for
 * another turn.
 *
 * Whether `limit` better candidates exist is counted at a pop, once `limit` were expanded.
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
    uint64_t *block; /* holds both */
} sl_pool;

/* Allocates room for limits up to max_limit. Errors: SL_ENOMEM. */
sl_status sl_pool_init(sl_pool *pool, const sl_allocator *allocator, const sl_candidate_kernels *kernels,
                       size_t max_limit);
void sl_pool_free(sl_pool *pool, const sl_allocator *allocator, size_t max_limit);

/* Raises the room and the limit from max_limit to `more`. The candidates stay, the keys are lost. On failure nothing
 * changes.
 * Errors: SL_ENOMEM. */
sl_status sl_pool_grow(sl_pool *pool, const sl_allocator *allocator, size_t max_limit, size_t more);

/* Empties the pool. The caller offers each id once a walk at most.
 * Parameters: best_limit: the rank of sl_pool_kth_score; 0: the caller does not ask for it. */
void sl_pool_start(sl_pool *pool, size_t limit, size_t best_limit);

/* Adds the candidates above the threshold, of n up to SL_TURN_IDS. NaN and -INFINITY never enter. */
void sl_pool_offer(sl_pool *pool, const float *scores, const uint32_t *ids, size_t n);

/* Ends the walk: leaves the `most` best candidates, or fewer, in `keys`, in any order. */
void sl_pool_finish(sl_pool *pool, size_t most);

/* Keeps the `most` best of `keys`, after some were removed. */
void sl_pool_keep_best(sl_pool *pool, size_t most);

/* Sets `keys` to candidates that no walk found, in any order.
 * Parameters: n: at most a quarter above the limit that the pool has room for. */
void sl_pool_set(sl_pool *pool, const float *scores, const uint32_t *ids, size_t n);

/* Sorts `keys`, best first. Candidates that are scored again need no order. */
void sl_pool_sort(sl_pool *pool);

/* Returns a candidate's key. Keys order as scores do; of equal scores the larger id is first. 0 and -0 are equal. */
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

/* Returns the best_limit-th best score, or the SL_BEST_SCORES-th if that rank is lower; -INFINITY while there are
 * fewer. */
static inline float sl_pool_kth_score(const sl_pool *pool) {
    return pool->candidates.best_scores[pool->candidates.best_count - 1];
}

/* Marks the best unexpanded candidate as expanded and returns its place; SL_NO_PLACE if there is none. */
static inline size_t sl_pool_pop_place(sl_pool *pool) {
    size_t place = pool->kernels->best(&pool->candidates);
    if (place != SL_NO_PLACE) pool->popped_score = pool->candidates.scores[place];
    return place;
}

/* Marks the best unexpanded candidate as expanded and returns it; SL_POOL_NONE if `limit` better ones are known. */
static inline uint32_t sl_pool_pop(sl_pool *pool) {
    size_t place = sl_pool_pop_place(pool);
    if (place == SL_NO_PLACE) return SL_POOL_NONE;
    if (pool->expanded++ >= pool->limit &&
        pool->kernels->at_least(pool->candidates.scores, pool->candidates.count, pool->popped_score) > pool->limit)
        return SL_POOL_NONE;
    return pool->candidates.ids[place];
}

#endif
