/* Searches with a callback or a bitmap find the nearest accepted vectors, and their work is bounded. */
#include "hnsw/search/searcher.h"
#include "tests/hnsw/search/allowed_rows.h"
#include "tests/support/check_main.h"
#include "tests/support/sanitized.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t asked; /* by the callback; atomic */

static void set_up(void) {
    rows_set_up();
    asked = 0;
}

static sl_index *make(sl_metric metric, sl_codes codes, sl_refine refine) {
    return index_of(metric, codes, refine, N);
}

static int accept_by_bit(void *ctx, uint64_t id) {
    (void)ctx;
    __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
    return is_allowed(id) ? -1 : 0; /* any number but 0 is a yes */
}

static int even_row(void *ctx, uint64_t id) {
    (void)ctx;
    return row_of(id) % 2 == 0;
}

static void params_of(sl_search_params *params, size_t ef, int by_bits, int by_call) {
    sl_search_params_init(params);
    params->ef = ef;
    params->accept_bits = by_bits ? bits : NULL;
    params->accept_bits_count = by_bits ? STEP * N : 0;
    params->accept = by_call ? accept_by_bit : NULL;
}

/* ---------------------------------------------------------------------------------------------------------------
 * What is found
 * ------------------------------------------------------------------------------------------------------------- */

static const size_t shares[] = {1, 2, 10, 100, 1000, 0};

/* With a pool that holds everything, bitmap, callback and both give the exact answer. */
START_TEST(all_that_is_accepted_is_found) {
    if (!stands_for_others(_i)) return;
    const sl_metric metric = (sl_metric)(_i % 3);
    sl_index *index = make(metric, _i / 3 ? SL_CODES_F32 : SL_CODES_I8, _i / 3 ? SL_REFINE_NONE : SL_REFINE_F32);
    static uint64_t wanted[Q * K], ids[Q * K];
    static float scores[Q * K];
    for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
        size_t accepted = allow_every(shares[s], 7);
        truth(metric, wanted);
        for (int way = 1; way < 4; way++) {
            sl_search_params params;
            sl_search_stats stats;
            params_of(&params, N, way & 1, way & 2);
            params.rerank = N;
            ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, ids, scores, &stats));
            size_t found = expect_lawful(ids, scores);
            ck_assert_mem_eq(ids, wanted, sizeof ids);
            ck_assert_uint_eq(found, Q * (accepted < K ? accepted : K));
            ck_assert_uint_eq(stats.results, found);
        }
    }
    sl_index_free(index);
}
END_TEST

/* With a small ef, a filtered search reaches the recall of an unfiltered one. */
START_TEST(a_filter_costs_no_recall) {
    static const sl_refine tiers[] = {SL_REFINE_NONE, SL_REFINE_F32};
    sl_index *index = make(SL_METRIC_COSINE, _i ? SL_CODES_I8 : SL_CODES_F32, tiers[_i]);
    static uint64_t wanted[Q * K], ids[Q * K];
    static float scores[Q * K];
    sl_search_params params;
    sl_search_stats plain, stats;
    allow_every(1, 7);
    truth(SL_METRIC_COSINE, wanted);
    sl_search_params_init(&params);
    params.ef = 16;
    ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, ids, scores, &plain));
    double unfiltered = indexes_recall(ids, wanted, Q, K);
    ck_assert(unfiltered > 0.7 && unfiltered < 1);
    for (size_t share = 1; share <= 64; share *= 2) {
        allow_every(share, 8);
        truth(SL_METRIC_COSINE, wanted);
        params_of(&params, 16, 1, 0);
        ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, ids, scores, &stats));
        expect_lawful(ids, scores);
        double recall = indexes_recall(ids, wanted, Q, K);
        /* A look at partitions may miss 0.64 / ef. */
        double wanted_recall = unfiltered < 0.96 ? unfiltered : 0.96;
        ck_assert_msg(recall >= wanted_recall - 0.005, "one in %zu: recall %g, not %g", share, recall, wanted_recall);
        if (share == 1) ck_assert_uint_eq(stats.evaluations, plain.evaluations);
        if (share > 4) ck_assert_uint_gt(stats.evaluations, plain.evaluations);
    }
    sl_index_free(index);
}
END_TEST

START_TEST(bitmap_and_callback_must_agree) {
    sl_index *index = make(SL_METRIC_L2, SL_CODES_I8, SL_REFINE_NONE);
    static uint64_t wanted[Q * K], ids[Q * K];
    static float scores[Q * K];
    allow_every(3, 9);
    sl_search_params params;
    params_of(&params, 500, 1, 0);
    params.accept = even_row;
    ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, ids, scores, NULL));
    ck_assert_uint_eq(expect_lawful(ids, scores), Q * K);
    for (size_t i = 0; i < Q * K; i++)
        ck_assert_uint_eq(row_of(ids[i]) % 2, 0);
    /* The same in one bitmap. */
    for (size_t row = 1; row < N; row += 2)
        bits[id_of(row) / 64] &= ~(UINT64_C(1) << (id_of(row) % 64));
    params.accept = NULL;
    ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, wanted, scores, NULL));
    ck_assert_mem_eq(ids, wanted, sizeof ids);
    sl_index_free(index);
}
END_TEST

/* Ids from accept_bits_count on are refused, and no word behind the last is read: the block ends there. */
START_TEST(bitmaps_end_where_they_say) {
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE);
    uint64_t ids[K];
    const size_t counts[] = {0, 1, 63, 64, 65, 640, 6001, STEP * N};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        size_t words = (counts[c] + 63) / 64, below = (counts[c] + STEP - 1) / STEP, found = 0;
        uint64_t *own = malloc(words * sizeof *own + 1);
        memset(own, 0xff, words * sizeof *own);
        sl_search_params params;
        params_of(&params, N, 0, 0);
        params.accept_bits = own;
        params.accept_bits_count = counts[c];
        sl_search_stats stats;
        ck_ok(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, ids, NULL, &stats));
        for (; found < K && ids[found] != SL_NO_ID; found++)
            ck_assert_uint_lt(ids[found], counts[c]);
        ck_assert_uint_eq(found, below < K ? below : K);
        ck_assert_uint_eq(stats.results, found);
        free(own);
    }
    sl_search_params params;
    params_of(&params, 64, 0, 0);
    params.accept_bits_count = 1;
    ck_fails(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, ids, NULL, NULL), SL_EINVAL, "accept_bits");
    sl_index_free(index);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * How it is done
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(threads_filter_alike) {
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_BF16);
    static uint64_t one[Q * K], four[Q * K];
    static float scores[Q * K];
    sl_search_stats alone, together;
    allow_every(50, 10);
    sl_search_params params;
    params_of(&params, 64, 1, 1);
    ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, one, scores, &alone));
    uint64_t asked_by_one = asked;
    params.threads = 4;
    ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, four, scores, &together));
    expect_lawful(four, scores);
    ck_assert_mem_eq(one, four, sizeof one);
    ck_assert_mem_eq(&alone, &together, sizeof alone);
    ck_assert_uint_gt(asked_by_one, 0);
    ck_assert_uint_eq(asked, 2 * asked_by_one);
    sl_index_free(index);
}
END_TEST

/* A callback that accepts nothing is called once for each id of one walk, and then once more for each id. A bound on
 * visits ends that, and the stats tell it. */
START_TEST(work_is_bounded) {
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_F32);
    uint64_t ids[K];
    float scores[K];
    sl_search_params params;
    sl_search_stats stats;
    params_of(&params, 64, 0, 1);
    ck_ok(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, ids, scores, &stats));
    ck_assert_uint_eq(asked, 64 + N);
    ck_assert_uint_eq(stats.results, 0);
    ck_assert_uint_eq(stats.cut, 0);
    for (size_t j = 0; j < K; j++)
        ck_assert(ids[j] == SL_NO_ID && isnan(scores[j]));
    for (size_t most = 1; most < 2 * N; most *= 4) {
        asked = 0;
        params.max_visits = most;
        ck_ok(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, ids, scores, &stats));
        ck_assert_uint_le(stats.evaluations, most + 1024);
        ck_assert_uint_le(asked, stats.evaluations);
        ck_assert_uint_eq(stats.cut, stats.evaluations >= most);
        ck_assert_uint_eq(stats.results, 0);
    }
    sl_index_free(index);
}
END_TEST

/* If few are accepted, all of them are found with any ef: min(k, accepted). */
START_TEST(few_that_are_accepted_are_found) {
    const sl_metric metric = (sl_metric)_i;
    sl_index *index = make(metric, SL_CODES_I8, SL_REFINE_F32);
    static uint64_t wanted[Q * K], ids[Q * K];
    static float scores[Q * K];
    for (size_t share = 500; share <= N / 2; share *= 2)
        for (int by_call = 0; by_call < 2; by_call++) {
            size_t accepted = allow_every(share, 7);
            sl_search_params params;
            sl_search_stats stats;
            truth(metric, wanted);
            params_of(&params, 16, !by_call, by_call);
            ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, ids, scores, &stats));
            expect_lawful(ids, scores);
            ck_assert_uint_eq(stats.results, Q * (accepted < K ? accepted : K));
            if (accepted <= K) ck_assert_mem_eq(ids, wanted, sizeof ids);
        }
    sl_index_free(index);
}
END_TEST

/* A filter that excludes the items a user has seen, a few of the nearest, costs no second walk. */
START_TEST(slight_filters_cost_one_walk) {
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_F32);
    uint64_t ids[K], rest[K];
    sl_search_params params;
    sl_search_stats plain, stats;
    params_of(&params, 64, 0, 0);
    ck_ok(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, ids, NULL, &plain));
    allow_every(1, 0);
    for (size_t i = 0; i < K; i++)
        bits[ids[i] / 64] &= ~(UINT64_C(1) << (ids[i] % 64));
    params_of(&params, 64, 1, 1);
    ck_ok(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, rest, NULL, &stats));
    ck_assert_uint_eq(asked, 64 - K);
    ck_assert_uint_eq(stats.evaluations, plain.evaluations);
    ck_assert_uint_eq(stats.results, K);
    for (size_t i = 0; i < K; i++)
        for (size_t j = 0; j < K; j++)
            ck_assert_uint_ne(rest[i], ids[j]);
    /* Nor if the pool holds little more than the results: 54 of 64 for 50 of them. */
    uint64_t many[50];
    asked = 0;
    ck_ok(sl_index_search(index, queries, SL_F32, 1, 0, 50, &params, many, NULL, &stats));
    ck_assert_uint_eq(asked, 64 - K);
    ck_assert_uint_eq(stats.results, 50);
    sl_index_free(index);
}
END_TEST

/* Callers inside the library read the results in the searcher's memory. */
START_TEST(found_where_it_lies) {
    sl_index *index = make((sl_metric)_i, SL_CODES_I8, SL_REFINE_F32);
    uint64_t ids[K];
    float scores[K];
    allow_every(4, 11);
    sl_search_params params;
    params_of(&params, 64, 1, 0);
    sl_searcher *searcher;
    ck_ok(sl_searcher_create(index, 512, &searcher));
    for (size_t q = 0; q < Q; q++) {
        sl_search_stats stats, found_stats;
        sl_results found;
        ck_ok(sl_searcher_search(searcher, queries + q * DIM, SL_F32, K, &params, ids, scores, &stats));
        ck_ok(sl_searcher_find(searcher, (sl_query){queries + q * DIM, SL_F32}, K, &params, &found, &found_stats));
        ck_assert_mem_eq(&stats, &found_stats, sizeof stats);
        ck_assert_uint_eq(found.count, stats.results);
        for (size_t i = 0; i < found.count; i++) {
            ck_assert_uint_eq(sl_id_of(&index->graph, (uint32_t)found.nodes[i].id), ids[i]);
            ck_assert_float_eq(sl_public_score(&index->graph, found.nodes[i].score), scores[i]);
        }
    }
    sl_searcher_free(searcher);
    sl_index_free(index);
}
END_TEST

START_TEST(empty_indexes_are_filtered_too) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    sl_index *index;
    ck_ok(sl_index_create(&params, &index));
    sl_search_params search;
    params_of(&search, 64, 1, 1);
    uint64_t ids[K];
    ck_ok(sl_index_search(index, queries, SL_F32, 1, 0, K, &search, ids, NULL, NULL));
    ck_assert_uint_eq(ids[0], SL_NO_ID);
    ck_assert_uint_eq(asked, 0);
    sl_index_free(index);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("accept");
    tcase_add_checked_fixture(tests, set_up, rows_tear_down);
    tcase_add_loop_test(tests, all_that_is_accepted_is_found, 0, 6);
    tcase_add_loop_test(tests, a_filter_costs_no_recall, 0, 2);
    tcase_add_test(tests, bitmap_and_callback_must_agree);
    tcase_add_test(tests, bitmaps_end_where_they_say);
    tcase_add_test(tests, work_is_bounded);
    tcase_add_loop_test(tests, few_that_are_accepted_are_found, 0, 3);
    tcase_add_test(tests, slight_filters_cost_one_walk);
    tcase_add_loop_test(tests, found_where_it_lies, 0, 3);
    tcase_add_test(tests, empty_indexes_are_filtered_too);
    TCase *threads = tcase_create("threads");
    tcase_add_checked_fixture(threads, set_up, rows_tear_down);
    tcase_add_test(threads, threads_filter_alike);
    return check_main("accept", (TCase *[]){tests, threads}, 2);
}
