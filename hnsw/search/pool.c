#include "hnsw/search/pool.h"

#include "base/memory.h"

/* The pool drops candidates once it holds more than twice the limit. A turn's candidates need room on top. Kernels
 * write whole registers past the last candidate (SPARE), and past the best of each sixteen (BEHIND). */
enum { SPARE = 64, BEHIND = 32 };

static size_t room_for(size_t limit) {
    return 2 * limit + SPARE + SL_TURN_IDS;
}

/* Rounds up to a multiple of sixteen. */
static size_t places_for(size_t limit) {
    return (room_for(limit) + BEHIND + 15) / 16 * 16;
}

static size_t tops_for(size_t limit) {
    return places_for(limit) / 16 + BEHIND;
}

static size_t peaks_for(size_t limit) {
    return tops_for(limit) / 16 + BEHIND;
}

static size_t floats_for(size_t limit) {
    return 3 * places_for(limit) + tops_for(limit) + peaks_for(limit);
}

sl_status sl_pool_init(sl_pool *pool, const sl_allocator *allocator, const sl_candidate_kernels *kernels,
                       size_t max_limit) {
    sl_status status;
    void *block;
    *pool = (sl_pool){.kernels = kernels};
    SL_TRY_GOTO(sl_mem_alloc(allocator, floats_for(max_limit) * sizeof(float), &block), fail);
    pool->candidates.scores = block;
    pool->candidates.open = pool->candidates.scores + places_for(max_limit);
    pool->candidates.ids = (uint32_t *)(void *)(pool->candidates.open + places_for(max_limit));
    pool->candidates.tops = (float *)(void *)(pool->candidates.ids + places_for(max_limit));
    pool->candidates.peaks = pool->candidates.tops + tops_for(max_limit);
    SL_TRY_GOTO(sl_mem_alloc(allocator, 2 * room_for(max_limit) * sizeof *pool->keys, &block), fail);
    pool->keys = pool->block = block;
    pool->spare = pool->keys + room_for(max_limit);
    return SL_OK;
fail:
    sl_pool_free(pool, allocator, max_limit);
    return status;
}

void sl_pool_free(sl_pool *pool, const sl_allocator *allocator, size_t max_limit) {
    SL_FREE_ARRAY(allocator, pool->candidates.scores, floats_for(max_limit));
    sl_mem_free(allocator, pool->block, 2 * room_for(max_limit) * sizeof *pool->keys);
    *pool = (sl_pool){0};
}

sl_status sl_pool_grow(sl_pool *pool, const sl_allocator *allocator, size_t max_limit, size_t more) {
    sl_pool grown;
    const sl_candidates *from = &pool->candidates;
    SL_TRY(sl_pool_init(&grown, allocator, pool->kernels, more));
    memcpy(grown.candidates.scores, from->scores, places_for(max_limit) * sizeof(float));
    memcpy(grown.candidates.open, from->open, places_for(max_limit) * sizeof(float));
    memcpy(grown.candidates.ids, from->ids, places_for(max_limit) * sizeof(uint32_t));
    memcpy(grown.candidates.tops, from->tops, tops_for(max_limit) * sizeof(float));
    memcpy(grown.candidates.peaks, from->peaks, peaks_for(max_limit) * sizeof(float));
    memcpy(grown.candidates.best_scores, from->best_scores, sizeof from->best_scores);
    grown.candidates.count = from->count;
    grown.candidates.threshold = from->threshold;
    grown.candidates.best_count = from->best_count;
    grown.limit = more;
    grown.room = 2 * more + SPARE;
    grown.expanded = pool->expanded;
    grown.popped_score = pool->popped_score;
    sl_pool_free(pool, allocator, max_limit);
    *pool = grown;
    return SL_OK;
}

void sl_pool_start(sl_pool *pool, size_t limit, size_t best_limit) {
    pool->limit = limit;
    pool->room = 2 * limit + SPARE;
    pool->expanded = 0;
    pool->size = 0;
    pool->candidates.best_count = best_limit < SL_BEST_SCORES ? best_limit : SL_BEST_SCORES;
    pool->kernels->empty(&pool->candidates);
}

void sl_pool_offer(sl_pool *pool, const float *scores, const uint32_t *ids, size_t n) {
    pool->kernels->admit(&pool->candidates, scores, ids, n);
    uint32_t limit = (uint32_t)pool->limit;
    if (pool->candidates.count > pool->room) pool->kernels->keep(&pool->candidates, limit, limit + limit / 4);
}

/* Merges runs of one, two, four keys and so on, and ends with the last merge in `keys`. The next key comes from either
 * run as if at random, so the loop doesn't branch on it. It may read a key past the end of a run, but doesn't use it.
 */
void sl_pool_sort(sl_pool *pool) {
    uint64_t *from = pool->keys, *to = pool->spare;
    size_t n = pool->size;
    for (size_t run = 1; run < n && !pool->sorted; run *= 2) {
        for (size_t begin = 0; begin < n; begin += 2 * run) {
            size_t a = begin, middle = begin + run < n ? begin + run : n, b = middle;
            size_t end = begin + 2 * run < n ? begin + 2 * run : n;
            for (size_t i = begin; i < end; i++) {
                size_t first = (size_t)(b == end) | ((size_t)(a < middle) & (size_t)(from[a] >= from[b]));
                to[i] = from[b] ^ ((from[a] ^ from[b]) & -(uint64_t)first);
                a += first;
                b += 1 - first;
            }
        }
        uint64_t *sorted = to;
        to = from;
        from = sorted;
    }
    pool->keys = from;
    pool->spare = to;
    pool->sorted = 1;
}

void sl_pool_finish(sl_pool *pool, size_t most) {
    uint32_t wanted = (uint32_t)(most < pool->limit ? most : pool->limit);
    pool->kernels->keep(&pool->candidates, wanted, wanted);
    sl_pool_set(pool, pool->candidates.scores, pool->candidates.ids, pool->candidates.count);
}

void sl_pool_keep_best(sl_pool *pool, size_t most) {
    if (pool->size <= most) return;
    for (size_t i = 0; i < pool->size; i++) {
        pool->candidates.scores[i] = sl_pool_score(pool->keys[i]);
        pool->candidates.ids[i] = sl_pool_id(pool->keys[i]);
    }
    pool->candidates.count = pool->size;
    sl_pool_finish(pool, most);
}

void sl_pool_set(sl_pool *pool, const float *scores, const uint32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++)
        pool->keys[i] = sl_pool_key(scores[i], ids[i]);
    pool->size = n;
    pool->sorted = 0;
}
