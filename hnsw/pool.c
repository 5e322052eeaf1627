#include "hnsw/pool.h"

#include "base/memory.h"

#include <float.h>

/* Four buckets for each candidate kept order them well enough; a walk clears them all. */
enum { LEAST_BUCKETS = 256, MOST_BUCKETS = 4096, A_CANDIDATE = 4 };

/* Twice the limit and CROWD may count before the best are sorted out, and a turn's candidates come on top. */
enum { ROOM = 8, CROWD = 16, SPARE = CROWD + SL_POOL_TURN };

static size_t buckets_for(size_t limit) {
    size_t count = LEAST_BUCKETS;
    while (count < MOST_BUCKETS && count < A_CANDIDATE * limit)
        count *= 2;
    return count;
}

/* Half of it: what may count, and as much again that has sunk. The rest comes on top before that is looked at. */
static size_t room_for(size_t limit) {
    return ROOM * limit + 2 * SPARE;
}

sl_status sl_pool_init(sl_pool *pool, const sl_allocator *allocator, size_t max_limit) {
    size_t room = room_for(max_limit), buckets = buckets_for(max_limit);
    sl_status status;
    void *block;
    *pool = (sl_pool){.room = (uint32_t)room};
    SL_TRY_GOTO(sl_mem_alloc(allocator, 3 * (room + 1) * sizeof(uint32_t), &block), fail);
    pool->ids = block;
    pool->next = pool->ids + room + 1;
    pool->scores = (float *)(void *)(pool->next + room + 1);
    SL_TRY_GOTO(sl_mem_alloc(allocator, room + 1, &block), fail);
    pool->expanded = block;
    SL_TRY_GOTO(sl_mem_alloc(allocator, buckets * sizeof *pool->buckets, &block), fail);
    pool->buckets = block;
    SL_TRY_GOTO(sl_mem_alloc(allocator, buckets / 64 * sizeof *pool->open, &block), fail);
    pool->open = block;
    SL_TRY_GOTO(sl_mem_alloc(allocator, (2 * max_limit + SPARE) * sizeof *pool->keys, &block), fail);
    pool->keys = block;
    return SL_OK;
fail:
    sl_pool_free(pool, allocator, max_limit);
    return status;
}

void sl_pool_free(sl_pool *pool, const sl_allocator *allocator, size_t max_limit) {
    size_t room = room_for(max_limit), buckets = buckets_for(max_limit);
    sl_mem_free(allocator, pool->ids, 3 * (room + 1) * sizeof(uint32_t));
    sl_mem_free(allocator, pool->expanded, room + 1);
    sl_mem_free(allocator, pool->buckets, buckets * sizeof *pool->buckets);
    sl_mem_free(allocator, pool->open, buckets / 64 * sizeof *pool->open);
    sl_mem_free(allocator, pool->keys, (2 * max_limit + SPARE) * sizeof *pool->keys);
    *pool = (sl_pool){0};
}

static void clear_buckets(sl_pool *pool) {
    size_t count = (size_t)pool->range.last + 1;
    memset(pool->buckets, 0, count * sizeof *pool->buckets);
    memset(pool->open, 0, count / 64 * sizeof *pool->open);
    pool->floor = 0;
    pool->top = -1;
    pool->total = 0;
    pool->arrived = 0;
    /* Where it is not asked for, nothing is as near. */
    pool->near = pool->near_limit ? 0 : pool->range.last + 1;
    pool->near_total = 0;
}

void sl_pool_start(sl_pool *pool, size_t limit, size_t near_limit) {
    pool->limit = limit;
    pool->near_limit = near_limit;
    pool->size = 0;
    pool->full = 0;
    pool->crowd = 8 + limit / 16;
    pool->most = 2 * limit + CROWD;
    pool->bound = -INFINITY;
    pool->range = (sl_buckets){.low = 0, .scale = 0, .last = (int32_t)buckets_for(limit) - 1};
    clear_buckets(pool);
}

/* Alike as far as floats can tell, or without bounds: then one bucket has to do. */
static void set_range(sl_pool *pool, float low, float width) {
    pool->range.low = isfinite(low) ? low : 0;
    pool->range.scale = (float)(pool->range.last + 1) / width;
    if (!isfinite(pool->range.scale) || !isfinite(low)) pool->range.scale = 0;
}

void sl_pool_expect(sl_pool *pool, const float *scores, size_t n) {
    float low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        low = scores[i] < low ? scores[i] : low;
        high = scores[i] > high ? scores[i] : high;
    }
    /* What follows is likely to be better: the first are far away. */
    set_range(pool, low, 3 * (high - low));
}

/* By insertion where a few are out of place, which is all that buckets leave; else by a heap. */
static void sort_keys(uint64_t *keys, size_t n) {
    size_t moved = 0, most = 16 * n + 64;
    for (size_t i = 1; i < n && moved < most; i++) {
        uint64_t key = keys[i];
        size_t j = i;
        for (; j > 0 && keys[j - 1] < key; j--)
            keys[j] = keys[j - 1];
        keys[j] = key;
        moved += i - j;
    }
    if (moved < most) return;
    /* A heap with the smallest on top, taken down from the end. */
    for (size_t end = n, start = n / 2; end > 1;) {
        uint64_t key;
        if (start > 0) {
            key = keys[--start];
        } else {
            key = keys[--end];
            keys[end] = keys[0];
        }
        size_t at = start;
        for (size_t child; (child = 2 * at + 1) < end; at = child) {
            if (child + 1 < end && keys[child + 1] < keys[child]) child++;
            if (keys[child] >= key) break;
            keys[at] = keys[child];
        }
        keys[at] = key;
    }
}

/* The key of the worst of the `limit` best, where too many count; else one that is below all. Entries' numbers stand in
 * for ids, so that no two keys are equal. */
static uint64_t least_key(sl_pool *pool) {
    size_t count = 0;
    if (pool->total < pool->most) return 0;
    for (uint32_t entry = 1; entry <= pool->arrived; entry++)
        if (sl_bucket_of(&pool->range, pool->scores[entry]) >= pool->floor)
            pool->keys[count++] = sl_pool_key(pool->scores[entry], entry);
    sort_keys(pool->keys, count);
    pool->bound = sl_pool_score(pool->keys[pool->limit - 1]);
    return pool->keys[pool->limit - 1];
}

/* By how much the first n scores exceed the lowest on average. A few that are far above all others are left out. */
static float mean_above(const sl_pool *pool, size_t n, float low) {
    enum { PASSES = 4, FAR = 16 };
    float high = FLT_MAX, mean = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        double sum = 0;
        size_t count = 0;
        float most = low;
        for (size_t entry = 1; entry <= n; entry++) {
            float score = pool->scores[entry];
            if (score > high) continue;
            sum += (double)score - (double)low;
            count++;
            most = score > most ? score : most;
        }
        mean = count ? (float)(sum / (double)count) : 0;
        high = low + FAR * mean;
        if (most <= high) break;
    }
    return mean;
}

/* Puts the first n entries, all there are, into the buckets of a new range. */
static void fill_buckets(sl_pool *pool, size_t n) {
    clear_buckets(pool);
    for (uint32_t entry = 1; entry <= n; entry++) {
        int32_t bucket = sl_bucket_of(&pool->range, pool->scores[entry]);
        sl_pool_bucket *to = &pool->buckets[bucket];
        to->count++;
        if (pool->expanded[entry]) continue;
        pool->next[entry] = to->open;
        to->open = entry;
        pool->open[bucket >> 6] |= (uint64_t)1 << (bucket & 63);
        if (bucket > pool->top) pool->top = bucket;
    }
    pool->arrived = (uint32_t)n;
    pool->total = n;
    while (pool->total - pool->buckets[pool->floor].count >= pool->limit)
        pool->total -= pool->buckets[pool->floor++].count;
    if (!pool->near_limit) return;
    pool->near_total = n;
    while (pool->near_total - pool->buckets[pool->near].count >= pool->near_limit)
        pool->near_total -= pool->buckets[pool->near++].count;
}

void sl_pool_refit(sl_pool *pool) {
    uint64_t least = least_key(pool);
    size_t kept = 0, limit = pool->limit;
    float low = INFINITY;
    for (uint32_t entry = 1; entry <= pool->arrived; entry++) {
        float score = pool->scores[entry];
        if (sl_bucket_of(&pool->range, score) < pool->floor || sl_pool_key(score, entry) < least) continue;
        kept++;
        pool->ids[kept] = pool->ids[entry];
        pool->scores[kept] = score;
        pool->expanded[kept] = pool->expanded[entry];
        low = score < low ? score : low;
    }
    pool->full = kept >= limit;
    /* Scores above the worst that counts fall off about exponentially: four times the mean leaves some per cent to the
     * last bucket. */
    set_range(pool, low, 4 * mean_above(pool, kept, low));
    fill_buckets(pool, kept);
    /* Where that did not help, not before there are twice as many. */
    size_t last = pool->buckets[pool->range.last].count;
    pool->crowd = 8 + limit / 16;
    if (2 * last > pool->crowd) pool->crowd = 2 * last;
}

void sl_pool_finish(sl_pool *pool, size_t most) {
    size_t sum = 0, wanted = most < pool->limit ? most : pool->limit;
    int32_t least = pool->range.last;
    /* Places: a bucket's entries behind those of all better ones. */
    for (; least >= pool->floor; least--) {
        uint32_t count = pool->buckets[least].count;
        pool->buckets[least].open = (uint32_t)sum;
        sum += count;
        if (sum >= wanted) break;
    }
    if (least < pool->floor) least = pool->floor;
    float lowest =
        least > 0 && pool->range.scale > 0 ? pool->range.low + (float)(least - 1) / pool->range.scale : -INFINITY;
    for (uint32_t entry = 1; entry <= pool->arrived; entry++) {
        /* Cheaper than the bucket, and never wrong by more than one. */
        if (pool->scores[entry] < lowest) continue;
        int32_t bucket = sl_bucket_of(&pool->range, pool->scores[entry]);
        if (bucket < least) continue;
        pool->keys[pool->buckets[bucket].open++] = sl_pool_key(pool->scores[entry], pool->ids[entry]);
    }
    sort_keys(pool->keys, sum);
    pool->size = sum < wanted ? sum : wanted;
}

void sl_pool_fill(sl_pool *pool, const float *scores, const uint32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++)
        pool->keys[i] = sl_pool_key(scores[i], ids[i]);
    sort_keys(pool->keys, n);
    pool->size = n;
}
