/*
 * The candidates of a walk: at most `limit` of them, best first, in one sorted array of 64-bit keys. A key holds the
 * score, as an integer that orders like it, above the id; the score's lowest bit says "expanded", so that order,
 * membership and progress are one array and an insert is one memmove.
 */
#ifndef SL_HNSW_POOL_H
#define SL_HNSW_POOL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define SL_POOL_EXPANDED ((uint64_t)1 << 32)
#define SL_POOL_NONE     0xffffffffu /* no id */

typedef struct sl_pool {
    uint64_t *keys;
    size_t size, limit;
    size_t next; /* nothing before it is unexpanded */
} sl_pool;

/* Larger scores give larger keys. NaN, which only a damaged file can bring, lands at one of the ends. */
static inline uint64_t sl_pool_key(float score, uint32_t id) {
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    bits ^= bits >> 31 ? 0xffffffffu : 0x80000000u;
    return (uint64_t)(bits & ~1u) << 32 | id;
}

static inline float sl_pool_score(uint64_t key) {
    uint32_t bits = (uint32_t)(key >> 32) & ~1u;
    bits ^= bits >> 31 ? 0x80000000u : 0xffffffffu;
    float score;
    memcpy(&score, &bits, sizeof score);
    return score;
}

static inline uint32_t sl_pool_id(uint64_t key) {
    return (uint32_t)key;
}

static inline void sl_pool_start(sl_pool *pool, size_t limit) {
    pool->size = pool->next = 0;
    pool->limit = limit;
}

/* Scores not above it would fall off the end. */
static inline float sl_pool_bound(const sl_pool *pool) {
    return pool->size < pool->limit ? -INFINITY : sl_pool_score(pool->keys[pool->size - 1]);
}

/* Takes a key unless it would fall off the end or its id is already there; returns whether it was taken. */
static inline int sl_pool_insert(sl_pool *pool, uint64_t key) {
    /* Halving by addition alone: where a key goes is a coin toss at every step, and a branch on it would be
     * mispredicted at every other one. */
    size_t low = 0;
    for (size_t left = pool->size; left > 0;) {
        size_t half = (left + 1) / 2;
        low += pool->keys[low + half - 1] > key ? half : 0;
        left -= half;
    }
    /* The same id has the same score, expanded or not. */
    if (low < pool->size && pool->keys[low] == key) return 0;
    for (size_t i = low; i-- > 0 && pool->keys[i] >> 33 == key >> 33;)
        if (sl_pool_id(pool->keys[i]) == sl_pool_id(key)) return 0;
    /* A score that is equal but for the bit the pool gave up may come this far. */
    if (low == pool->limit) return 0;
    if (pool->size < pool->limit) pool->size++;
    memmove(pool->keys + low + 1, pool->keys + low, (pool->size - 1 - low) * sizeof *pool->keys);
    pool->keys[low] = key;
    if (low < pool->next) pool->next = low;
    return 1;
}

/* The best unexpanded candidate, now marked expanded, or SL_POOL_NONE. */
static inline uint32_t sl_pool_pop(sl_pool *pool) {
    while (pool->next < pool->size && pool->keys[pool->next] & SL_POOL_EXPANDED)
        pool->next++;
    if (pool->next == pool->size) return SL_POOL_NONE;
    pool->keys[pool->next] |= SL_POOL_EXPANDED;
    return sl_pool_id(pool->keys[pool->next++]);
}

#endif
