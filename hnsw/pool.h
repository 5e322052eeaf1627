/*
 * The candidates of a walk: those of the `limit` best seen so far, the best unexpanded one of which is asked for again
 * and again. Scores fall into buckets of equal width, so that an insert is a few stores and the best candidate is found
 * by its bit; a sorted array takes a search and a memmove for each insert, a third of a walk's time at a limit of some
 * hundred. Within a bucket the latest comes first, which a walk does not notice.
 *
 * `floor` is the bucket below which nothing counts any more: the lowest such that fewer than `limit` lie above it. The
 * range of the buckets follows the scores: it is fitted anew when the pool is full for the first time, when the floor
 * has used up half of it, and when the last bucket, which takes all that is better still, is crowded. Where the floor's
 * own bucket is crowded, since scores are alike or the range is too wide for them, the `limit` best are sorted out, and
 * from then on what is no better than the worst of them is refused: a walk must not wander over copies without end, nor
 * miss what is better than they are.
 */
#ifndef SL_HNSW_POOL_H
#define SL_HNSW_POOL_H

#include "distance/kernels.h"

#include <math.h>
#include <string.h>

#define SL_POOL_NONE 0xffffffffu /* no id */
#define SL_POOL_TURN (2 * SL_MAX_M + 2)

typedef struct sl_pool_bucket {
    uint32_t open;  /* the latest unexpanded entry, or 0 */
    uint32_t count; /* entries, expanded or not */
} sl_pool_bucket;

typedef struct sl_pool {
    /* Entries, by number from 1 in order of arrival. */
    uint32_t *ids, *next;
    float *scores;
    uint8_t *expanded;
    uint32_t arrived, room;

    sl_pool_bucket *buckets;
    uint64_t *open;      /* a bit a bucket: it has unexpanded entries */
    int32_t floor;       /* nothing below it counts */
    int32_t top;         /* nothing unexpanded is above it */
    size_t limit, total; /* entries from the floor up */
    int32_t near;        /* the bucket of the best so far that are `near_limit`; 0 where that is 0 */
    size_t near_limit, near_total;
    size_t crowd;     /* entries of the last bucket that ask for a new range */
    size_t most;      /* entries from the floor up that ask for the `limit` best to be sorted out */
    float bound;      /* what is no better is refused */
    int full;         /* the range was fitted when there were `limit` entries */
    sl_buckets range; /* of the scores */

    /* What sl_pool_finish leaves: keys, best first. */
    uint64_t *keys;
    size_t size;
} sl_pool;

/* Room for walks with limits up to max_limit. */
sl_status sl_pool_init(sl_pool *pool, const sl_allocator *allocator, size_t max_limit);
void sl_pool_free(sl_pool *pool, const sl_allocator *allocator, size_t max_limit);

/* Empties it; near_limit 0: nobody will ask for sl_pool_near. An id is to be offered once in a walk. */
void sl_pool_start(sl_pool *pool, size_t limit, size_t near_limit);

/* The range for a pool that is offered its first candidates. */
void sl_pool_expect(sl_pool *pool, const float *scores, size_t n);

/* Fits the range to what is there and forgets what lies below the floor. */
void sl_pool_refit(sl_pool *pool);

/* Leaves the best, `most` or fewer, in keys: the walk is over. */
void sl_pool_finish(sl_pool *pool, size_t most);

/* Leaves candidates that no walk has found in keys, best first; n is at most the limit the pool has room for. */
void sl_pool_fill(sl_pool *pool, const float *scores, const uint32_t *ids, size_t n);

/* Keys order as scores do, larger ids first among equals. NaN, which only a damaged file can bring, is no candidate. */
static inline uint64_t sl_pool_key(float score, uint32_t id) {
    uint32_t bits;
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

/* A candidate and its bucket of the range; returns whether it was taken. NaN and what is infinitely bad are not. */
static inline int sl_pool_insert(sl_pool *pool, int32_t bucket, float score, uint32_t id) {
    if (bucket < pool->floor || !(score > pool->bound)) return 0;
    uint32_t entry = ++pool->arrived;
    sl_pool_bucket *to = &pool->buckets[bucket];
    pool->ids[entry] = id;
    pool->scores[entry] = score;
    pool->expanded[entry] = 0;
    pool->next[entry] = to->open;
    to->open = entry;
    to->count++;
    pool->open[bucket >> 6] |= (uint64_t)1 << (bucket & 63);
    if (bucket > pool->top) pool->top = bucket;
    size_t total = pool->total + 1;
    int32_t floor = pool->floor;
    while (total - pool->buckets[floor].count >= pool->limit)
        total -= pool->buckets[floor++].count;
    pool->total = total;
    pool->floor = floor;
    if (bucket < pool->near) return 1;
    pool->near_total++;
    while (pool->near_total - pool->buckets[pool->near].count >= pool->near_limit)
        pool->near_total -= pool->buckets[pool->near++].count;
    return 1;
}

/* About the score of the near_limit-th best, or less; -INFINITY while there are not as many. */
static inline float sl_pool_near(const sl_pool *pool) {
    if (pool->near_total < pool->near_limit || pool->range.scale == 0) return -INFINITY;
    return pool->range.low + (float)pool->near / pool->range.scale;
}

/* About the score of the candidate popped last, or more. */
static inline float sl_pool_popped(const sl_pool *pool) {
    if (pool->range.scale == 0 || pool->top == pool->range.last) return INFINITY;
    return pool->range.low + (float)(pool->top + 1) / pool->range.scale;
}

/* Whether the range no longer fits. To be asked once in SL_POOL_TURN inserts at least: there is room for these. */
static inline int sl_pool_unfit(const sl_pool *pool) {
    return (pool->total >= pool->limit && (!pool->full || pool->floor > pool->range.last / 2)) ||
           pool->buckets[pool->range.last].count > pool->crowd || pool->total >= pool->most ||
           (pool->range.scale == 0 && !pool->full) || pool->arrived > pool->room / 2;
}

/* The best unexpanded candidate, now marked expanded, or SL_POOL_NONE. */
static inline uint32_t sl_pool_pop(sl_pool *pool) {
    int32_t word = pool->top >> 6, last = pool->floor >> 6;
    if (pool->top < 0) return SL_POOL_NONE;
    uint64_t bits = pool->open[word] & (~(uint64_t)0 >> (63 - (pool->top & 63)));
    while (!bits) {
        if (--word < last) return SL_POOL_NONE;
        bits = pool->open[word];
    }
    int32_t bucket = word * 64 + 63 - __builtin_clzll(bits);
    if (bucket < pool->floor) return SL_POOL_NONE;
    sl_pool_bucket *from = &pool->buckets[bucket];
    uint32_t entry = from->open;
    from->open = pool->next[entry];
    if (!from->open) pool->open[word] &= ~((uint64_t)1 << (bucket & 63));
    pool->expanded[entry] = 1;
    pool->top = bucket;
    return pool->ids[entry];
}

#endif
