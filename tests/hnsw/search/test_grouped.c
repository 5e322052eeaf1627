/* Searches of which a few results at most have one key. */
#include "tests/hnsw/search/allowed_rows.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/sanitized.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EACH = 10 }; /* rows of a key, where keys are many */

static uint64_t keys[N];

/* Keys of every order of magnitude. */
static uint64_t name_of(size_t group) {
    return (uint64_t)group * UINT64_C(0x123456789abcdef1) + (group % 3 == 0 ? UINT64_MAX : 0);
}

/* Neighbours seldom share a key. */
static void scatter_keys(void) {
    for (size_t row = 0; row < N; row++)
        keys[row] = name_of(row % (N / EACH));
}

/* The rows nearest to a query, `shared` of them, have one key, and the others as above. */
static void share_near(const float *query, float least) {
    scatter_keys();
    for (size_t row = 0; row < N; row++)
        if (is_near(row, query, least)) keys[row] = 7;
}

static sl_index *make(sl_metric metric, sl_codes codes, const sl_allocator *allocator) {
    static uint64_t ids[N];
    sl_index_params params;
    sl_add_params add;
    sl_index *index;
    for (size_t row = 0; row < N; row++)
        ids[row] = id_of(row);
    indexes_params(&params, DIM, metric);
    params.codes = codes;
    params.keys = 1;
    params.allocator = allocator;
    sl_add_params_init(&add);
    add.keys = keys;
    add.threads = 1;
    ck_ok(sl_index_create(&params, &index));
    ck_ok(sl_index_add(index, x, SL_F32, N, 0, ids, &add));
    return index;
}

static void allow_all(void) {
    for (size_t row = 0; row < N; row++)
        allow(row, 1);
}

/* How many of `count` ids have the key of the last. */
static size_t times_of_last(const uint64_t *ids, size_t count) {
    size_t times = 0;
    for (size_t i = 0; i < count; i++)
        times += keys[row_of(ids[i])] == keys[row_of(ids[count - 1])];
    return times;
}

/* The true results of one query among the allowed rows. Returns how many. */
static size_t true_groups(sl_metric metric, const float *query, size_t size, uint64_t *ids) {
    static uint64_t rows[N];
    size_t found = 0;
    indexes_exact(metric, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){query, SL_F32, 1}, N, rows);
    for (size_t i = 0; i < N && found < K; i++) {
        if (!is_allowed(id_of(rows[i]))) continue;
        ids[found++] = id_of(rows[i]);
        if (times_of_last(ids, found) > size) found--;
    }
    return found;
}

static void params_of(sl_search_params *params, size_t size) {
    sl_search_params_init(params);
    params->group_size = size;
}

/* Checks that results are allowed and within their group's size. Returns the share of true ones. */
static double expect_groups(const sl_index *index, sl_metric metric, const sl_search_params *params, size_t asked) {
    static uint64_t ids[Q * K];
    static float scores[Q * K];
    uint64_t wanted[K];
    size_t hits = 0, sum = 0;
    ck_ok(sl_index_search(index, queries, SL_F32, asked, 0, K, params, ids, scores, NULL));
    for (size_t q = 0; q < asked; q++) {
        const uint64_t *mine = ids + q * K;
        size_t count = true_groups(metric, queries + q * DIM, params->group_size, wanted);
        for (size_t i = 0; i < K; i++) {
            ck_assert_int_eq(mine[i] == SL_NO_ID, i >= count);
            if (i >= count) continue;
            ck_assert(is_allowed(mine[i]));
            ck_assert_uint_le(times_of_last(mine, i + 1), params->group_size);
            for (size_t j = 0; j < i; j++)
                ck_assert_uint_ne(mine[i], mine[j]);
            for (size_t j = 0; j < count; j++)
                hits += mine[i] == wanted[j];
        }
        sum += count;
    }
    return sum ? (double)hits / (double)sum : 1;
}

/* ---------------------------------------------------------------------------------------------------------------
 * What is found
 * ------------------------------------------------------------------------------------------------------------- */

/* Under each metric and over each kind of codes, with and without a filter. */
START_TEST(groups_of_every_kind) {
    if (!stands_for_others(_i)) return;
    const sl_metric metric = (sl_metric)(_i % 3);
    const size_t sizes[] = {1, 3, K + 5};
    scatter_keys();
    sl_index *index = make(metric, (sl_codes)(_i / 3), NULL);
    sl_search_params params;
    for (size_t s = 0; s < 3; s++) {
        allow_all();
        params_of(&params, sizes[s]);
        params.ef = 100;
        params.probes = 2; /* do not count */
        double recall = expect_groups(index, metric, &params, 12);
        ck_assert_msg(recall > 0.9, "at most %zu a key: recall %g", sizes[s], recall);
        allow_every(s ? 3 : 100, 7);
        sl_filter *filter = filter_of_bits(index);
        params.filter = filter;
        recall = expect_groups(index, metric, &params, 12);
        ck_assert_msg(recall > 0.9, "at most %zu a key, with a filter: recall %g", sizes[s], recall);
        sl_filter_free(filter);
    }
    sl_index_free(index);
}
END_TEST

/* With exact codes and everything scored, the true groups are found, down to fewer than k. */
START_TEST(a_few_allowed_are_exact) {
    scatter_keys();
    sl_index *index = make(SL_METRIC_L2, SL_CODES_F32, NULL);
    const size_t every[] = {30, 1000, 0};
    for (size_t e = 0; e < 3; e++) {
        sl_search_params params;
        params_of(&params, 1);
        allow_every(every[e], 7);
        for (size_t row = 0; row < N; row++)
            if (row % (N / EACH) > 5) allow(row, e == 0 && is_allowed(id_of(row)));
        sl_filter *filter = filter_of_bits(index);
        params.filter = filter;
        params.strategy = SL_FILTER_EXACT;
        ck_assert_double_eq(expect_groups(index, SL_METRIC_L2, &params, 20), 1);
        sl_filter_free(filter);
    }
    sl_index_free(index);
}
END_TEST

/* All near vectors have one key. The others are found, and the work is bounded. */
START_TEST(one_key_of_thousands) {
    share_near(queries, 0.2f);
    size_t shared = 0;
    for (size_t row = 0; row < N; row++)
        shared += keys[row] == 7;
    ck_assert_uint_gt(shared, 100);
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I4, NULL);
    sl_search_params params;
    sl_search_stats stats;
    uint64_t ids[K];
    params_of(&params, 2);
    allow_all();
    double recall = expect_groups(index, SL_METRIC_COSINE, &params, 1);
    ck_assert_msg(recall >= 0.8, "%zu share a key: recall %g", shared, recall);
    ck_ok(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, ids, NULL, &stats));
    ck_assert_uint_le(stats.evaluations, 2 * N);
    for (size_t row = 0; row < N; row++)
        keys[row] = 7;
    sl_index_free(index);
    index = make(SL_METRIC_COSINE, SL_CODES_I4, NULL);
    ck_ok(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, ids, NULL, &stats));
    ck_assert_uint_eq(stats.results, 2);
    ck_assert(ids[1] != SL_NO_ID && ids[2] == SL_NO_ID);
    ck_assert_uint_le(stats.evaluations, 2 * N);
    sl_index_free(index);
}
END_TEST

/* If keys don't matter, a grouped search costs what a search costs, and finds the same. */
START_TEST(different_keys_cost_nothing) {
    for (size_t row = 0; row < N; row++)
        keys[row] = name_of(row);
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I4, NULL);
    static uint64_t plain[Q * K], grouped[Q * K];
    sl_search_params params;
    sl_search_stats one, other;
    params_of(&params, 0);
    ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, plain, NULL, &one));
    params_of(&params, 1);
    ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, grouped, NULL, &other));
    ck_assert_mem_eq(plain, grouped, sizeof plain);
    ck_assert_uint_le(other.evaluations, one.evaluations + one.evaluations / 50);
    params.threads = 4;
    ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, plain, NULL, NULL));
    ck_assert_mem_eq(plain, grouped, sizeof plain);
    sl_index_free(index);
}
END_TEST

/* Deleted vectors, and keys of before a change, don't count for a key. */
START_TEST(deletes_and_new_keys) {
    scatter_keys();
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I8, NULL);
    sl_search_params params;
    params_of(&params, 1);
    params.ef = 100;
    allow_all();
    for (size_t row = 0; row < N; row += 2) {
        const uint64_t id = id_of(row);
        ck_ok(sl_index_delete(index, &id, 1));
        allow(row, 0);
    }
    ck_assert(expect_groups(index, SL_METRIC_COSINE, &params, 12) > 0.9);
    for (size_t row = 1; row < N; row += 2) {
        const uint64_t id = id_of(row);
        keys[row] = name_of(row % 8);
        ck_ok(sl_index_set_keys(index, &id, 1, &keys[row]));
    }
    ck_assert(expect_groups(index, SL_METRIC_COSINE, &params, 12) > 0.9);
    sl_index_free(index);
}
END_TEST

/* Nearly all vectors have one key: a search for 10 keys would score them all. */
START_TEST(visits_are_bounded) {
    enum { MOST = 500, SPARE = 300 };
    for (size_t row = 0; row < N; row++)
        keys[row] = row % 1000 == 1;
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I8, NULL);
    sl_search_params params;
    sl_search_stats stats;
    uint64_t ids[K];
    sl_search_params_init(&params);
    params.group_size = 1;
    params.max_visits = MOST;
    ck_ok(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, ids, NULL, &stats));
    ck_assert_uint_eq(stats.cut, 1);
    ck_assert_uint_le(stats.evaluations, MOST + SPARE);
    ck_assert_uint_ge(stats.results, 1);
    sl_index_free(index);
}
END_TEST

START_TEST(bad_input_is_refused) {
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, 100);
    sl_search_params params;
    sl_searcher *searcher;
    sl_iterator *iterator;
    uint64_t ids[K];
    params_of(&params, 1);
    ck_fails(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, ids, NULL, NULL), SL_EINVAL,
             "sl_index_params.keys");
    ck_ok(sl_searcher_create(index, 64, &searcher));
    ck_fails(sl_searcher_search(searcher, queries, SL_F32, K, &params, ids, NULL, NULL), SL_EINVAL, "no keys");
    ck_fails(sl_iterator_create(index, queries, SL_F32, &params, &iterator), SL_EINVAL, "no groups");
    sl_searcher_free(searcher);
    sl_index_free(index);
}
END_TEST

/* An index without vectors, and one with fewer than k. */
START_TEST(few_and_none) {
    sl_index_params of;
    sl_index *index;
    sl_search_params params;
    uint64_t ids[K];
    indexes_params(&of, DIM, SL_METRIC_COSINE);
    of.keys = 1;
    ck_ok(sl_index_create(&of, &index));
    params_of(&params, SIZE_MAX);
    ck_ok(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, ids, NULL, NULL));
    ck_assert(ids[0] == SL_NO_ID);
    ck_ok(indexes_add(index, x, SL_F32, 4, NULL));
    ck_ok(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, ids, NULL, NULL));
    ck_assert(ids[3] != SL_NO_ID && ids[4] == SL_NO_ID);
    params.group_size = 1; /* one key, 0 */
    ck_ok(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, ids, NULL, NULL));
    ck_assert(ids[0] != SL_NO_ID && ids[1] == SL_NO_ID);
    sl_index_free(index);
}
END_TEST

START_TEST(every_allocation_fails_once) {
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    share_near(queries, 0.2f);
    sl_index *index = make(SL_METRIC_COSINE, SL_CODES_I8, &memory.allocator);
    sl_search_params params;
    uint64_t ids[K];
    size_t fails = 0;
    params_of(&params, 1);
    for (sl_status status = SL_ENOMEM; status != SL_OK; fails++) {
        memory.calls = 0;
        memory.fail_at = fails + 1;
        status = sl_index_search(index, queries, SL_F32, 1, 0, K, &params, ids, NULL, NULL);
        ck_assert(status == SL_OK || status == SL_ENOMEM);
    }
    memory.fail_at = 0;
    ck_assert_uint_ge(fails, 5);
    for (size_t i = 0; i < K; i++)
        ck_assert_uint_eq(times_of_last(ids, i + 1), 1);
    sl_index_free(index);
    ck_assert_uint_eq(memory.live_blocks, 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("grouped"), *threads = tcase_create("threads");
    tcase_add_checked_fixture(tests, rows_set_up, rows_tear_down);
    tcase_add_checked_fixture(threads, rows_set_up, rows_tear_down);
    tcase_add_loop_test(tests, groups_of_every_kind, 0, 12);
    tcase_add_test(tests, a_few_allowed_are_exact);
    tcase_add_test(tests, one_key_of_thousands);
    tcase_add_test(threads, different_keys_cost_nothing);
    tcase_add_test(tests, deletes_and_new_keys);
    tcase_add_test(tests, visits_are_bounded);
    tcase_add_test(tests, bad_input_is_refused);
    tcase_add_test(tests, few_and_none);
    tcase_add_test(tests, every_allocation_fails_once);
    return check_main("grouped", (TCase *[]){tests, threads}, 2);
}
