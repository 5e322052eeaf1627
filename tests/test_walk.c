/* The parts of a walk, each against something plain: the pool, the k best, the visited table; and that a search takes
 * no memory. Linked so that every allocation of the library's objects is counted. */
#include "base/random.h"
#include "hnsw/pool.h"
#include "hnsw/topk.h"
#include "hnsw/visited.h"
#include "tests/check_main.h"
#include "tests/clusters.h"
#include "tests/faults.h"
#include "tests/indexes.h"
#include "tests/system_calls.h"

#include <math.h>
#include <stdlib.h>

/* ---------------------------------------------------------------------------------------------------------------
 * Pool
 * ------------------------------------------------------------------------------------------------------------- */

enum { MOST = 64 };

typedef struct naive_pool {
    struct candidate {
        float score;
        uint32_t id;
        int expanded;
    } list[MOST + 1];
    size_t size, limit;
} naive_pool;

/* Behind all that are better, and behind those of equal score that are expanded or have a larger id. What is there has
 * precedence at the end. */
static void naive_insert(naive_pool *pool, float score, uint32_t id) {
    size_t at = 0;
    if (pool->size == pool->limit && score <= pool->list[pool->size - 1].score) return;
    for (size_t i = 0; i < pool->size; i++)
        if (pool->list[i].score == score && pool->list[i].id == id) return;
    while (at < pool->size && (pool->list[at].score > score ||
                               (pool->list[at].score == score && (pool->list[at].expanded || pool->list[at].id > id))))
        at++;
    for (size_t i = pool->size; i > at; i--)
        pool->list[i] = pool->list[i - 1];
    pool->list[at] = (struct candidate){score, id, 0};
    if (pool->size < pool->limit) pool->size++;
}

static uint32_t naive_pop(naive_pool *pool) {
    for (size_t i = 0; i < pool->size; i++) {
        if (pool->list[i].expanded) continue;
        pool->list[i].expanded = 1;
        return pool->list[i].id;
    }
    return SL_POOL_NONE;
}

static int pools_agree(const sl_pool *pool, const naive_pool *naive) {
    int agree = pool->size == naive->size;
    for (size_t i = 0; i < pool->size && agree; i++) {
        /* The mark took the lowest bit. */
        float score = naive->list[i].score;
        agree = sl_pool_id(pool->keys[i]) == naive->list[i].id &&
                fabsf(sl_pool_score(pool->keys[i]) - score) <= fabsf(score) * 0x1p-22f &&
                ((pool->keys[i] & SL_POOL_EXPANDED) != 0) == naive->list[i].expanded;
    }
    return agree;
}

START_TEST(pool_is_a_sorted_list) {
    for (uint64_t round = 0; round < 300; round++) {
        uint64_t keys[MOST + 1], drawn = 0;
        size_t wrong = 0;
        naive_pool naive = {.limit = 1 + sl_random_at(round, drawn++) % MOST};
        sl_pool pool = {.keys = keys};
        sl_pool_start(&pool, naive.limit);
        /* Few scores make ties, few ids make copies; an id always has the same score. */
        uint32_t ids = 4u << sl_random_at(round, drawn++) % 6, scores = 2u << sl_random_at(round, drawn++) % 6;
        for (size_t step = 0; step < 400; step++) {
            if (sl_random_at(round, drawn++) % 3 == 0) {
                uint32_t wanted = naive_pop(&naive);
                wrong += sl_pool_pop(&pool) != wanted;
            } else {
                uint32_t id = (uint32_t)(sl_random_at(round, drawn++) % ids);
                float score = (float)(sl_random_at(round + 77, id) % scores) - (float)scores / 2;
                score = sl_pool_score(sl_pool_key(score, 0));
                if (score > sl_pool_bound(&pool)) (void)sl_pool_insert(&pool, sl_pool_key(score, id));
                naive_insert(&naive, score, id);
            }
            wrong += !pools_agree(&pool, &naive);
        }
        ck_assert_uint_eq(wrong, 0);
    }
}
END_TEST

/* What a full pool is offered with the score of its last, whether or not the mark's bit makes it look better. */
START_TEST(a_full_pool_refuses_equals) {
    float scores[] = {-1, -0.3f, -0x1.000002p0f, 0.3f, 1, 0x1.000002p0f, 0};
    for (size_t i = 0; i < sizeof scores / sizeof *scores; i++)
        for (uint32_t id = 1; id < 6; id += 2)
            for (int expand = 0; expand < 2; expand++) {
                uint64_t keys[3] = {0, 0, 0x5a5a5a5a5a5a5a5au};
                sl_pool pool = {.keys = keys};
                sl_pool_start(&pool, 2);
                ck_assert(sl_pool_insert(&pool, sl_pool_key(scores[i], 2)));
                ck_assert(sl_pool_insert(&pool, sl_pool_key(scores[i], 4)));
                while (expand && sl_pool_pop(&pool) != SL_POOL_NONE)
                    ;
                if (scores[i] > sl_pool_bound(&pool)) (void)sl_pool_insert(&pool, sl_pool_key(scores[i], id));
                ck_assert_uint_eq(pool.size, 2);
                ck_assert_uint_eq(keys[2], 0x5a5a5a5a5a5a5a5au);
            }
}
END_TEST

START_TEST(keys_order_as_scores) {
    float scores[] = {-INFINITY, -3e38f, -2, -1, -1e-30f, 0, 1e-30f, 0.5f, 1, 1.5f, 3e38f, INFINITY};
    for (size_t i = 0; i < sizeof scores / sizeof *scores; i++) {
        uint64_t key = sl_pool_key(scores[i], UINT32_MAX);
        ck_assert_uint_eq(sl_pool_id(key), UINT32_MAX);
        ck_assert_uint_eq(key & SL_POOL_EXPANDED, 0);
        if (isfinite(scores[i])) ck_assert(fabsf(sl_pool_score(key) - scores[i]) <= fabsf(scores[i]) * 0x1p-22f);
        ck_assert(i == 0 || key > sl_pool_key(scores[i - 1], UINT32_MAX));
        /* Larger ids do not outweigh scores, and the mark stays below a better score. */
        ck_assert(i == 0 || sl_pool_key(scores[i], 0) > (sl_pool_key(scores[i - 1], UINT32_MAX) | SL_POOL_EXPANDED));
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

START_TEST(visited_is_exact_while_small) {
    enum { N = 20000 };
    static unsigned char seen[N];
    sl_allocator allocator = sl_allocator_of(NULL);
    sl_visited visited;
    ck_ok(sl_visited_init(&visited, &allocator, N, 10));
    for (uint64_t walk = 0; walk < 20; walk++) {
        sl_visited_clear(&visited);
        memset(seen, 0, sizeof seen);
        size_t wrong = 0;
        for (size_t i = 0; i < 3 * N; i++) {
            uint32_t id = (uint32_t)(sl_random_at(walk, i) % N);
            wrong += sl_visited_mark(&visited, id) != seen[id];
            seen[id] = 1;
        }
        ck_assert_uint_eq(wrong, 0);
    }
    sl_visited_free(&visited, &allocator);
}
END_TEST

/* Starting walks until what tells them apart has been used up, twice. */
START_TEST(walks_do_not_see_each_other) {
    sl_allocator allocator = sl_allocator_of(NULL);
    size_t sizes[] = {1, 40, 5000, SL_MAX_VECTORS};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        sl_visited visited;
        uint32_t last = (uint32_t)(sizes[s] - 1);
        ck_ok(sl_visited_init(&visited, &allocator, sizes[s], 10));
        size_t wrong = 0;
        for (size_t walk = 0; walk < 150000; walk++) {
            sl_visited_clear(&visited);
            wrong += sl_visited_mark(&visited, 0) != 0;
            wrong += sl_visited_mark(&visited, last) != (last == 0);
            wrong += sl_visited_mark(&visited, last) != 1;
        }
        ck_assert_uint_eq(wrong, 0);
        sl_visited_free(&visited, &allocator);
    }
}
END_TEST

/* Of all the ids there can be: memory stays bounded, and what was not marked is never said to have been. */
START_TEST(visited_may_forget_but_not_invent) {
    enum { MARKS = 3000 };
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_visited visited;
    ck_ok(sl_visited_init(&visited, &memory.allocator, UINT32_MAX, MARKS));
    ck_assert_uint_le(memory.live_bytes, (size_t)4 << 20);
    static uint32_t marked[MARKS];
    size_t forgotten = 0, invented = 0;
    for (uint64_t walk = 0; walk < 10; walk++) {
        sl_visited_clear(&visited);
        for (size_t i = 0; i < MARKS; i++) {
            uint32_t id = (uint32_t)sl_random_at(walk, i % 2 ? i : i / 2);
            if (i % 3 == 0) id |= 0xffff0000u;
            int known = 0;
            for (size_t j = 0; j < i && !known; j++)
                known = marked[j] == id;
            int said = sl_visited_mark(&visited, id);
            invented += said && !known;
            forgotten += known && !said;
            marked[i] = id;
        }
    }
    ck_assert_uint_eq(invented, 0);
    ck_assert_uint_lt(forgotten, MARKS);
    sl_visited_free(&visited, &memory.allocator);
    ck_assert_uint_eq(memory.live_blocks, 0);
    ck_ok(sl_visited_init(&visited, &memory.allocator, UINT32_MAX, (size_t)1 << 40));
    ck_assert_uint_le(memory.live_bytes, (size_t)16 << 20);
    sl_visited_free(&visited, &memory.allocator);
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

/* A searcher made for a small index goes on over a large one, and finds what one made for that finds. */
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
    tcase_add_test(tests, pool_is_a_sorted_list);
    tcase_add_test(tests, a_full_pool_refuses_equals);
    tcase_add_test(tests, keys_order_as_scores);
    tcase_add_test(tests, top_is_a_sort);
    tcase_add_test(tests, visited_is_exact_while_small);
    tcase_add_test(tests, walks_do_not_see_each_other);
    tcase_add_test(tests, visited_may_forget_but_not_invent);
    tcase_add_loop_test(tests, a_search_takes_no_memory, 0, 12);
    tcase_add_test(tests, a_searcher_sees_what_is_added);
    return check_main("walk", &tests, 1);
}
