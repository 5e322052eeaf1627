/* The parts of a walk, each against a plain version: the pool, the k best, the visited set. A search takes no memory.
 * Linked so that every allocation of the library's objects is counted. */
#include "base/random.h"
#include "base/visited.h"
#include "hnsw/search/pool.h"
#include "hnsw/search/topk.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"
#include "tests/support/system_calls.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* ---------------------------------------------------------------------------------------------------------------
 * Pool: against a list of all that it was offered
 * ------------------------------------------------------------------------------------------------------------- */

enum { TURN = 40, MOST_OFFERED = 200000 };

static struct offer {
    float score;
    int popped;
} offers[MOST_OFFERED]; /* by id */

typedef struct stage {
    fault_allocator memory;
    sl_pool pool;
    size_t max_limit, offered, taken;
} stage;

static void stage_open(stage *s, size_t max_limit) {
    fault_allocator_init(&s->memory, 0);
    s->max_limit = max_limit;
    ck_ok(sl_pool_init(&s->pool, &s->memory.allocator, &sl_kernels_best()->walk, max_limit));
}

static void stage_start(stage *s, size_t limit) {
    sl_pool_start(&s->pool, limit, 0);
    s->offered = s->taken = 0;
}

static void stage_close(stage *s) {
    sl_pool_free(&s->pool, &s->memory.allocator, s->max_limit);
    ck_assert_uint_eq(s->memory.live_blocks, 0);
}

/* Offers a turn's ids as a walk does. Scores are those of ids offered + 0, + 1, ... */
static void offer(stage *s, const float *scores, size_t n) {
    sl_pool *pool = &s->pool;
    uint32_t ids[TURN];
    for (size_t i = 0; i < n; i++) {
        ids[i] = (uint32_t)(s->offered + i);
        offers[s->offered + i] = (struct offer){scores[i], 0};
        s->taken += scores[i] > pool->candidates.threshold;
    }
    s->offered += n;
    sl_pool_offer(pool, scores, ids, n);
    ck_assert_uint_le(pool->candidates.count, pool->room);
}

static int larger_first(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return x > y ? -1 : x < y;
}

/* The possible candidates among all that was offered, best first. */
static size_t sorted_offers(const stage *s, float *out) {
    size_t n = 0;
    for (size_t id = 0; id < s->offered; id++)
        if (offers[id].score > -INFINITY) out[n++] = offers[id].score;
    qsort(out, n, sizeof *out, larger_first);
    return n;
}

/* The best of all, each once; of equals any. */
static void check_finish(stage *s, size_t most) {
    static float sorted[MOST_OFFERED];
    static unsigned char given[MOST_OFFERED];
    sl_pool *pool = &s->pool;
    size_t n = sorted_offers(s, sorted), wrong = 0;
    if (most > pool->limit) most = pool->limit;
    sl_pool_finish(pool, most);
    sl_pool_sort(pool);
    ck_assert_uint_eq(pool->size, n < most ? n : most);
    memset(given, 0, sizeof given);
    for (size_t i = 0; i < pool->size; i++) {
        uint32_t id = sl_pool_id(pool->keys[i]);
        ck_assert_uint_lt(id, s->offered);
        wrong += given[id] || sl_pool_score(pool->keys[i]) != sorted[i] || offers[id].score != sorted[i];
        given[id] = 1;
    }
    ck_assert_uint_eq(wrong, 0);
}

/* Checks that a pop returns the best candidate left, and that none of the limit best stays behind. */
static void check_pop(stage *s) {
    static float sorted[MOST_OFFERED];
    sl_pool *pool = &s->pool;
    float best = -INFINITY;
    for (size_t id = 0; id < s->offered; id++)
        if (!offers[id].popped && offers[id].score > best) best = offers[id].score;
    size_t n = sorted_offers(s, sorted);
    float last = n > pool->limit ? sorted[pool->limit - 1] : -INFINITY;
    uint32_t id = sl_pool_pop(pool);
    if (id == SL_POOL_NONE) {
        ck_assert_msg(best <= last, "nothing left, but %g of the %zu best was not given", (double)best, pool->limit);
        return;
    }
    ck_assert_uint_lt(id, s->offered);
    ck_assert_int_eq(offers[id].popped, 0);
    offers[id].popped = 1;
    ck_assert_float_eq(offers[id].score, best);
    ck_assert(offers[id].score >= last);
    ck_assert_float_eq(pool->popped_score, best);
}

/* Streams of scores: those of walks, and those for which halving a range of scores is slow or fails. */
typedef enum stream {
    UNIFORM,
    RISING,
    FALLING,
    EXPONENTIAL,
    MAGNITUDES,
    FEW_VALUES,
    ALL_EQUAL,
    EQUAL_THEN_BETTER,
    LOW_OUTLIER,
    LOWER_AND_LOWER,
    HIGH_OUTLIER,
    NEIGHBOURING_FLOATS,
    INFINITIES,
    NOT_NUMBERS,
    EXTREMES,
    STREAMS
} stream;

static float score_at(stream kind, uint64_t seed, size_t i, size_t n) {
    float unit = (float)sl_random_unit(seed, i), part = (float)i / (float)n;
    uint64_t bits = sl_random_at(seed + 1, i);
    switch (kind) {
    case RISING:
        return part + 0.1f * unit;
    case FALLING:
        return -part - 0.01f * unit;
    case EXPONENTIAL:
        return -logf(unit);
    case MAGNITUDES:
        return ldexpf(unit - 0.5f, (int)(bits % 200) - 100);
    case FEW_VALUES:
        return (float)(bits % 5) - 2;
    case ALL_EQUAL:
        return 3;
    case EQUAL_THEN_BETTER:
        return i < 3 * n / 4 ? 3 : 3 + unit;
    case LOW_OUTLIER:
        return i == 0 ? -1e30f : unit;
    case LOWER_AND_LOWER:
        return i < 10 ? -powf(10, (float)(3 * (10 - i))) : unit;
    case HIGH_OUTLIER:
        return i % 100 == 7 ? 1e30f : unit;
    case NEIGHBOURING_FLOATS:
        return 1 + (float)(bits % 512) * FLT_EPSILON;
    case INFINITIES:
        return bits % 31 == 0 ? INFINITY : bits % 37 == 0 ? -INFINITY : unit;
    case NOT_NUMBERS:
        return bits % 3 == 0 ? NAN : bits % 3 == 1 ? -NAN : unit;
    case EXTREMES:
        return bits % 2 ? FLT_MAX * (unit - 0.5f) : FLT_TRUE_MIN * (float)(bits % 7);
    default:
        return 2 * unit - 1;
    }
}

static void feed(stage *s, stream kind, uint64_t seed, size_t n, size_t pops) {
    for (size_t turn = 0; s->offered < n; turn++) {
        float scores[TURN];
        size_t count = turn == 0 ? 1 + seed % 2 : sl_random_at(seed + 2, turn) % TURN;
        if (count > n - s->offered) count = n - s->offered;
        for (size_t i = 0; i < count; i++)
            scores[i] = score_at(kind, seed, s->offered + i, n);
        offer(s, scores, count);
        for (size_t i = 0; i < pops; i++)
            check_pop(s);
    }
}

START_TEST(pool_keeps_the_best) {
    static const size_t limits[] = {1, 2, 3, 10, 64, 300, 1000};
    stage s;
    stage_open(&s, 1000);
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++)
        for (uint64_t seed = 0; seed < 6; seed++) {
            size_t n = (limits[l] / 2 + 1) << (seed + 1);
            if (n > 12 * limits[l] + 500) n = 12 * limits[l] + 500;
            stage_start(&s, limits[l]);
            feed(&s, (stream)_i, seed, n, 0);
            check_finish(&s, seed % 2 ? limits[l] / 3 + 1 : limits[l]);
        }
    stage_close(&s);
}
END_TEST

START_TEST(pool_gives_the_best_first) {
    static const size_t limits[] = {1, 2, 10, 64, 200};
    stage s;
    stage_open(&s, 200);
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            stage_start(&s, limits[l]);
            feed(&s, (stream)_i, seed, 800, 1 + seed);
            check_pop(&s);
            check_finish(&s, limits[l]);
        }
    stage_close(&s);
}
END_TEST

START_TEST(largest_pool_keeps_the_best) {
    stage s;
    stage_open(&s, SL_MAX_EF);
    stage_start(&s, SL_MAX_EF);
    feed(&s, _i ? ALL_EQUAL : EXPONENTIAL, 5, MOST_OFFERED, 0);
    check_finish(&s, SL_MAX_EF);
    stage_close(&s);
}
END_TEST

/* A walk over duplicates ends: once there are enough, no more of them are added. */
START_TEST(equal_scores_stay_few) {
    stage s;
    stage_open(&s, 100);
    stage_start(&s, 100);
    feed(&s, ALL_EQUAL, 1, 10000, 0);
    ck_assert_uint_le(s.taken, s.pool.room + TURN);
    size_t popped = 0;
    while (sl_pool_pop(&s.pool) != SL_POOL_NONE)
        popped++;
    ck_assert_uint_le(popped, 100);
    stage_close(&s);
}
END_TEST

/* The k-th best so far, or the last that a pool knows. */
START_TEST(pool_knows_what_is_near) {
    static const size_t limits[] = {1, 2, 10, SL_BEST_SCORES, 100};
    static float sorted[MOST_OFFERED];
    stage s;
    stage_open(&s, 20);
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
        size_t near = limits[l] < SL_BEST_SCORES ? limits[l] : SL_BEST_SCORES;
        stage_start(&s, 20);
        sl_pool_start(&s.pool, 20, limits[l]);
        for (size_t turn = 1; turn < 40; turn++) {
            feed(&s, (stream)_i, l, 7 * turn, 1);
            size_t n = sorted_offers(&s, sorted);
            ck_assert_float_eq(sl_pool_kth_score(&s.pool), n < near ? -INFINITY : sorted[near - 1]);
        }
    }
    stage_close(&s);
}
END_TEST

/* Pools of one room and several limits, one after the other, do not see each other. */
START_TEST(pool_starts_empty) {
    stage s;
    stage_open(&s, 300);
    for (size_t round = 0; round < 60; round++) {
        stage_start(&s, 1 + 37 * round % 300);
        ck_assert_uint_eq(sl_pool_pop(&s.pool), SL_POOL_NONE);
        if (round % 3 == 0) check_finish(&s, s.pool.limit);
        feed(&s, (stream)(round % STREAMS), round, 5 + 20 * round, round % 2);
        check_finish(&s, s.pool.limit);
    }
    stage_close(&s);
}
END_TEST

/* All but alike beside one that is not, the worst first. */
START_TEST(pool_sorts_what_lies_close) {
    stage s;
    stage_open(&s, 1000);
    stage_start(&s, 1000);
    for (size_t turn = 0; turn < 40; turn++) {
        float scores[TURN];
        for (size_t i = 0; i < TURN; i++)
            scores[i] = turn + i ? 1 + 1e-4f * (float)(turn * TURN + i) : -1e30f;
        offer(&s, scores, TURN);
    }
    check_finish(&s, 1000);
    stage_close(&s);
}
END_TEST

START_TEST(pool_needs_its_memory) {
    for (size_t fail_at = 1; fail_at <= 2; fail_at++) {
        fault_allocator memory;
        fault_allocator_init(&memory, fail_at);
        sl_pool pool;
        ck_assert_int_eq(sl_pool_init(&pool, &memory.allocator, &sl_kernels_best()->walk, 100), SL_ENOMEM);
        ck_assert_uint_eq(memory.live_blocks, 0);
    }
}
END_TEST

START_TEST(keys_order_as_scores) {
    float scores[] = {-INFINITY, -3e38f, -2, -1, -1e-30f, 0, 1e-30f, 0.5f, 1, 1.5f, 3e38f, INFINITY};
    for (size_t i = 0; i < sizeof scores / sizeof *scores; i++) {
        uint64_t key = sl_pool_key(scores[i], UINT32_MAX);
        ck_assert_uint_eq(sl_pool_id(key), UINT32_MAX);
        ck_assert_float_eq(sl_pool_score(key), scores[i]);
        /* Larger ids do not outweigh scores. */
        ck_assert(i == 0 || sl_pool_key(scores[i], 0) > sl_pool_key(scores[i - 1], UINT32_MAX));
    }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * The k best
 * ------------------------------------------------------------------------------------------------------------- */

static int better_first(const void *a, const void *b) {
    const sl_top_entry *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

START_TEST(top_is_a_sort) {
    for (uint64_t round = 0; round < 500; round++) {
        sl_top_entry all[200], kept[40];
        sl_top top = {kept, 0, 1 + sl_random_at(round, 0) % 40};
        size_t n = sl_random_at(round, 1) % 200, real = 0;
        for (size_t i = 0; i < n; i++) {
            uint64_t bits = sl_random_at(round, i + 2);
            double score = bits % 11 == 0 ? (double)NAN : (double)(bits % 30);
            sl_top_push(&top, score, bits >> 40);
            if (!isnan(score)) all[real++] = (sl_top_entry){score, bits >> 40};
        }
        qsort(all, real, sizeof *all, better_first);
        sl_top_sort(&top);
        ck_assert_uint_eq(top.size, real < top.k ? real : top.k);
        size_t wrong = 0;
        for (size_t i = 0; i < top.size; i++)
            wrong += kept[i].score != all[i].score || kept[i].id != all[i].id;
        ck_assert_uint_eq(wrong, 0);
    }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Visited
 * ------------------------------------------------------------------------------------------------------------- */

/* Marks a list's ids as a walk does; returns how many were unvisited. */
static size_t see(sl_visited *visited, const uint32_t *ids, size_t n) {
    uint32_t *found = sl_visited_place(visited);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!sl_visited_mark(visited, ids[i])) found[kept++] = ids[i];
    visited->count += kept;
    return kept;
}

static size_t words_set(const sl_visited *visited) {
    size_t set = 0;
    for (size_t i = 0; i <= visited->mask; i++)
        set += visited->words[i] != 0;
    return set;
}

/* Walks of `marks` ids each, some of which come again. */
static void check_walks(sl_visited *visited, uint32_t n, size_t marks) {
    enum { SOME = 20 };
    unsigned char *seen = malloc(n);
    for (uint64_t walk = 0; walk < 8; walk++) {
        sl_visited_clear(visited);
        ck_assert_uint_eq(words_set(visited), 0);
        memset(seen, 0, n);
        size_t wrong = 0;
        for (size_t i = 0; i < marks; i += SOME) {
            uint32_t ids[SOME];
            size_t fresh = 0;
            for (size_t j = 0; j < SOME; j++) {
                ids[j] = (uint32_t)(sl_random_at(walk, i + j) % n);
                fresh += !seen[ids[j]];
                seen[ids[j]] = 1;
            }
            wrong += see(visited, ids, SOME) != fresh;
        }
        ck_assert_uint_eq(wrong, 0);
    }
    free(seen);
}

/* With a list that holds a walk's ids, few or many of them, and with one that does not. */
START_TEST(visited_is_exact) {
    static const size_t counts[] = {1, 31, 32, 33, 1000, 20000, 300000};
    static const size_t expected[] = {10, 2000, 1u << 20}, marks[] = {20, 300, 6000};
    sl_allocator allocator = sl_allocator_of(NULL);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (size_t e = 0; e < 3; e++) {
            sl_visited visited;
            ck_ok(sl_visited_init(&visited, &allocator, counts[c], expected[e], 20));
            for (size_t m = 0; m < 3; m++)
                check_walks(&visited, (uint32_t)counts[c], marks[m]);
            if (counts[c] == 20000) ck_assert_int_eq(visited.overflowed, e < 2);
            sl_visited_free(&visited, &allocator);
        }
}
END_TEST

/* Marks of one list stay while the next list comes, also where the room is used up. */
START_TEST(lists_of_two_turns_stand_side_by_side) {
    enum { EACH = 50 };
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_visited visited;
    ck_ok(sl_visited_init(&visited, &allocator, 100000, 7, EACH));
    const uint32_t *before = NULL;
    uint32_t next = 0, first = 0;
    size_t count = 0;
    for (size_t turn = 0; turn < 500; turn++) {
        uint32_t ids[EACH], *place = sl_visited_place(&visited);
        size_t n = sl_random_at(3, turn) % (EACH + 1);
        for (size_t i = 0; i < n; i++)
            ids[i] = next++;
        ck_assert_uint_eq(see(&visited, ids, n), n);
        for (size_t i = 0; i < count; i++)
            ck_assert_uint_eq(before[i], first + i);
        before = place;
        first = next - (uint32_t)n;
        count = n;
    }
    sl_visited_free(&visited, &allocator);
}
END_TEST

START_TEST(visited_covers_more) {
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_visited visited;
    ck_ok(sl_visited_init(&visited, &memory.allocator, 100, 50, 20));
    const uint32_t *words = visited.words;
    ck_ok(sl_visited_cover(&visited, &memory.allocator, 100));
    ck_assert_ptr_eq(visited.words, words);
    uint32_t id = 99;
    ck_assert_uint_eq(see(&visited, &id, 1), 1);
    for (size_t i = 1; i <= 2; i++) {
        memory.fail_at = memory.calls + i;
        ck_assert_int_eq(sl_visited_cover(&visited, &memory.allocator, 5000), SL_ENOMEM);
        ck_assert_ptr_eq(visited.words, words);
        ck_assert_uint_eq(visited.covers, 100);
        ck_assert_uint_eq(see(&visited, &id, 1), 0);
    }
    memory.fail_at = 0;
    ck_ok(sl_visited_cover(&visited, &memory.allocator, 5000));
    ck_assert_uint_ge(visited.covers, 5000);
    check_walks(&visited, 5000, 3000);
    sl_visited_free(&visited, &memory.allocator);
    ck_assert_uint_eq(memory.live_blocks, 0);
    for (size_t fail_at = 1; fail_at <= 2; fail_at++) {
        memory.calls = 0;
        memory.fail_at = fail_at;
        ck_assert_int_eq(sl_visited_init(&visited, &memory.allocator, 100, 50, 20), SL_ENOMEM);
        ck_assert_uint_eq(memory.live_blocks, 0);
    }
}
END_TEST

/* Runs from any id on and of any length, over the end of the words too: these ids are marked, and no others. */
START_TEST(runs_are_marked) {
    enum { MOST = 80 };
    static const uint32_t counts[] = {1, 31, 64, 80, 1000, 20000, UINT32_MAX};
    sl_allocator allocator = sl_allocator_of(NULL);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        sl_visited visited;
        const uint32_t n = counts[c];
        ck_ok(sl_visited_init(&visited, &allocator, n, 2000, MOST));
        const size_t rounds = n > SL_VISITED_MOST ? 10 : 200;
        for (size_t round = 0; round < rounds; round++) {
            uint32_t first = (uint32_t)(sl_random_at(round, 0) % n);
            /* Every other one over the end of the words, or near it. */
            if (round % 2 && (first | visited.mask) < n) first = (first | visited.mask) - (visited.mask < 20 ? 0 : 20);
            uint32_t left = n - first < MOST ? n - first : MOST;
            uint32_t length = (uint32_t)(sl_random_at(round, 1) % (left + 1));
            sl_visited_clear(&visited);
            ck_assert_uint_eq(words_set(&visited), 0);
            uint32_t *ids = sl_visited_place(&visited);
            sl_visited_mark_run(&visited, first, length, ids);
            visited.count += length;
            size_t wrong = 0;
            for (uint32_t i = 0; i < length; i++)
                wrong += ids[i] != first + i;
            uint32_t from = first < MOST ? 0 : first - MOST, end = n - first < 2 * MOST ? n : first + 2 * MOST;
            for (uint32_t id = from; id < end; id++) {
                uint32_t word = visited.words[id & visited.mask], bit = id >> visited.shift & 31;
                wrong += (word >> bit & 1) != (id >= first && id - first < length);
            }
            ck_assert_uint_eq(wrong, 0);
        }
        sl_visited_free(&visited, &allocator);
    }
}
END_TEST

/* All possible ids are marked: memory stays bounded. An id that was marked is never reported as unmarked. */
START_TEST(far_ids_share_a_mark) {
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_visited visited;
    ck_ok(sl_visited_init(&visited, &memory.allocator, UINT32_MAX, 3000, 20));
    ck_assert_uint_le(memory.live_bytes, SL_VISITED_MOST / 8 + 16384);
    const uint32_t apart = (uint32_t)SL_VISITED_MOST;
    for (uint32_t round = 0; round < 3; round++) {
        uint32_t ids[] = {5, 5 + apart / 2, 6, 4 + apart, 5 + apart, UINT32_MAX - 1, (UINT32_MAX - 1) % apart};
        static const size_t fresh[] = {1, 1, 1, 1, 0, 1, 0};
        sl_visited_clear(&visited);
        ck_assert_uint_eq(words_set(&visited), 0);
        for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
            ck_assert_uint_eq(see(&visited, &ids[i], 1), fresh[i]);
            ck_assert_uint_eq(see(&visited, &ids[i], 1), 0);
        }
    }
    sl_visited_free(&visited, &memory.allocator);
    /* Below that number every id has its own. */
    ck_ok(sl_visited_init(&visited, &memory.allocator, SL_VISITED_MOST, 3000, 20));
    uint32_t ends[] = {0, 1, apart / 2, apart / 32, apart / 32 - 1, apart - 1};
    ck_assert_uint_eq(see(&visited, ends, 6), 6);
    sl_visited_free(&visited, &memory.allocator);
    ck_assert_uint_eq(memory.live_blocks, 0);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Searches
 * ------------------------------------------------------------------------------------------------------------- */

enum { N = 2000, DIM = 24, K = 10 };

static int accept_few(void *ctx, uint64_t id) {
    (void)ctx;
    return id % 7 == 0;
}

/* Not with a filter either, where one search is several walks. */
START_TEST(a_search_takes_no_memory) {
    float *x = clusters_make(N + 50, DIM, 0.3, 1);
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_index_params params;
    indexes_params(&params, DIM, (sl_metric)(_i % 3));
    params.refine = (sl_refine)(_i / 3);
    params.allocator = &memory.allocator;
    uint64_t own[N], ids[K];
    float scores[K];
    for (size_t i = 0; i < N; i++)
        own[i] = 10 * i + 3;
    sl_index *index = indexes_make(&params, x, SL_F32, N, own, 1);
    sl_searcher *searcher;
    ck_ok(sl_searcher_create(index, 100, &searcher));
    size_t calls = memory.calls, blocks = memory.live_blocks, system_before = system_calls();
    sl_status status = SL_OK;
    for (size_t q = 0; q < 50 && status == SL_OK; q++)
        status = sl_searcher_search(searcher, x + (N + q) * DIM, SL_F32, K, NULL, ids, scores, NULL);
    uint64_t bits[10 * N / 64 + 1];
    memset(bits, 0x55, sizeof bits);
    sl_search_params filter;
    sl_search_params_init(&filter);
    filter.ef = 20;
    filter.accept = accept_few;
    filter.accept_bits = bits;
    filter.accept_bits_count = 10 * N;
    for (size_t q = 0; q < 50 && status == SL_OK; q++)
        status = sl_searcher_search(searcher, x + (N + q) * DIM, SL_F32, K, &filter, ids, scores, NULL);
    size_t system_after = system_calls();
    ck_ok(status);
    ck_assert_uint_eq(memory.calls, calls);
    ck_assert_uint_eq(memory.live_blocks, blocks);
    ck_assert_uint_eq(system_after, system_before);
    ck_assert_uint_gt(system_before, 0);
    sl_searcher_free(searcher);
    sl_index_free(index);
    ck_assert_uint_eq(memory.live_blocks, 0);
    free(x);
}
END_TEST

/* A searcher made for a small index serves after the index has grown, and finds what a new one finds. */
START_TEST(a_searcher_sees_what_is_added) {
    float *x = clusters_make(20000, 4, 0.3, 1);
    sl_index_params params;
    indexes_params(&params, 4, SL_METRIC_L2);
    sl_searcher *early, *empty, *late;
    sl_index *index;
    ck_ok(sl_index_create(&params, &index));
    ck_ok(sl_searcher_create(index, 100, &empty));
    ck_ok(indexes_add(index, x, SL_F32, 10, NULL));
    ck_ok(sl_searcher_create(index, 100, &early));
    ck_ok(indexes_add(index, x + 10 * 4, SL_F32, 19990, NULL));
    ck_ok(sl_searcher_create(index, 100, &late));
    for (size_t q = 0; q < 20000; q += 97) {
        uint64_t a[K], b[K], c[K];
        ck_ok(sl_searcher_search(empty, x + q * 4, SL_F32, K, NULL, a, NULL, NULL));
        ck_ok(sl_searcher_search(early, x + q * 4, SL_F32, K, NULL, b, NULL, NULL));
        ck_ok(sl_searcher_search(late, x + q * 4, SL_F32, K, NULL, c, NULL, NULL));
        ck_assert_mem_eq(a, c, sizeof a);
        ck_assert_mem_eq(b, c, sizeof b);
    }
    sl_searcher_free(empty);
    sl_searcher_free(early);
    sl_searcher_free(late);
    sl_index_free(index);
    free(x);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("walk");
    tcase_add_loop_test(tests, pool_keeps_the_best, 0, STREAMS);
    tcase_add_loop_test(tests, pool_gives_the_best_first, 0, STREAMS);
    tcase_add_loop_test(tests, pool_knows_what_is_near, 0, STREAMS);
    tcase_add_loop_test(tests, largest_pool_keeps_the_best, 0, 2);
    tcase_add_test(tests, equal_scores_stay_few);
    tcase_add_test(tests, pool_starts_empty);
    tcase_add_test(tests, pool_sorts_what_lies_close);
    tcase_add_test(tests, pool_needs_its_memory);
    tcase_add_test(tests, keys_order_as_scores);
    tcase_add_test(tests, top_is_a_sort);
    tcase_add_test(tests, visited_is_exact);
    tcase_add_test(tests, runs_are_marked);
    tcase_add_test(tests, lists_of_two_turns_stand_side_by_side);
    tcase_add_test(tests, visited_covers_more);
    tcase_add_test(tests, far_ids_share_a_mark);
    tcase_add_loop_test(tests, a_search_takes_no_memory, 0, 12);
    tcase_add_test(tests, a_searcher_sees_what_is_added);
    return check_main("walk", &tests, 1);
}
