/* Range searches, exact and by a walk, beside a search for all vectors; and their errors. */
#include "tests/hnsw/search/allowed_rows.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const sl_metric metrics[] = {SL_METRIC_COSINE, SL_METRIC_L2, SL_METRIC_IP};
enum { SOME = 12 }; /* of the queries */

/* The results of one query: each id once. */
typedef struct given {
    size_t count, end_at; /* nonzero: ends as it gets that many */
    float scores[STEP * N + 1];
    uint8_t has[STEP * N + 1];
} given;

static int take(void *ctx, size_t query, uint64_t id, float score) {
    given *of = (given *)ctx + query;
    ck_assert_uint_le(id, STEP * N);
    ck_assert(!of->has[id]);
    of->has[id] = 1;
    of->scores[id] = score;
    return ++of->count == of->end_at;
}

static given *found, *all;

static void set_up(void) {
    rows_set_up();
    found = calloc(Q, sizeof *found);
    all = calloc(1, sizeof *all);
}

static void tear_down(void) {
    free(found);
    free(all);
    rows_tear_down();
}

/* All allowed vectors with their scores, nearest first, from a search that re-ranks everything. */
static size_t list_all(sl_searcher *searcher, const float *query, const sl_filter *filter, float *scores) {
    static uint64_t ids[N];
    sl_search_params params;
    sl_search_stats stats;
    sl_search_params_init(&params);
    params.filter = filter;
    params.strategy = SL_FILTER_EXACT;
    params.rerank = N;
    ck_ok(sl_searcher_search(searcher, query, SL_F32, N, &params, ids, scores, &stats));
    memset(all, 0, sizeof *all);
    for (size_t i = 0; i < stats.results; i++)
        (void)take(all, 0, ids[i], scores[i]);
    return stats.results;
}

static sl_search_stats range(const sl_index *index, const float *query, double radius, const sl_range_params *params) {
    sl_search_stats stats;
    memset(found, 0, sizeof *found);
    ck_ok(sl_index_range(index, query, SL_F32, 1, 0, radius, params, take, found, &stats));
    ck_assert_uint_eq(stats.results, found->count);
    return stats;
}

static int is_within(sl_metric metric, float score, double radius) {
    return metric == SL_METRIC_L2 ? (double)score <= radius : (double)score >= radius;
}

/* Checks that all results are within the radius, with the scores of a search. */
static void expect_true(sl_metric metric, double radius) {
    for (size_t id = 0; id <= STEP * N; id++) {
        if (!found->has[id]) continue;
        ck_assert(all->has[id]);
        ck_assert(found->scores[id] == all->scores[id]);
        ck_assert(is_within(metric, found->scores[id], radius));
    }
}

static size_t count_within(sl_metric metric, const float *scores, size_t count, double radius) {
    size_t within = 0;
    for (size_t i = 0; i < count; i++)
        within += (size_t)is_within(metric, scores[i], radius);
    return within;
}

/* Exact: exactly the vectors within the radius. By a walk: nearly all of them, with no more work than scoring all. */
static void expect_ranges(sl_index *index, sl_metric metric, const sl_filter *filter, double least) {
    static float scores[N];
    const size_t ranks[] = {10, 100, 1000};
    double share[3] = {0};
    sl_range_params params;
    sl_range_params_init(&params);
    params.filter = filter;
    sl_searcher *searcher;
    ck_ok(sl_searcher_create(index, N, &searcher));
    for (size_t q = 0; q < SOME; q++) {
        const float *query = queries + q * DIM;
        size_t count = list_all(searcher, query, filter, scores);
        for (size_t r = 0; r < 3; r++) {
            double radius = (double)scores[ranks[r] - 1];
            params.exact = 1;
            sl_search_stats stats = range(index, query, radius, &params);
            size_t within = count_within(metric, scores, count, radius);
            ck_assert_uint_eq(found->count, within);
            ck_assert_uint_eq(stats.exact, 1);
            ck_assert_uint_eq(stats.expansions, 0);
            expect_true(metric, radius);
            params.exact = 0;
            stats = range(index, query, radius, &params);
            ck_assert_uint_eq(stats.exact + stats.walks, 1);
            ck_assert_uint_le(stats.evaluations, N + N / 8);
            expect_true(metric, radius);
            share[r] += (double)found->count / (double)within / SOME;
        }
    }
    sl_searcher_free(searcher);
    for (size_t r = 0; r < 3; r++)
        ck_assert_msg(share[r] >= least, "rank %zu: %f of what is within", ranks[r], share[r]);
}

START_TEST(what_scores_so_is_given) {
    if (SANITIZED && _i % 2) return; /* for its size */
    sl_metric metric = kinds[_i].metric;
    sl_index *index = index_of(metric, kinds[_i].codes, kinds[_i].refine, N);
    allow_every(1, 0);
    sl_filter *filter = filter_of_bits(index); /* of list_all, whose strategy wants one */
    expect_ranges(index, metric, filter, 0.95);
    sl_filter_free(filter);
    sl_index_free(index);
}
END_TEST

/* Refused and deleted vectors are steps of the walk, and no results. */
START_TEST(filters_and_deletes_leave_out) {
    if (SANITIZED && _i) return; /* for its size */
    sl_metric metric = metrics[_i];
    sl_index *index = index_of(metric, SL_CODES_I8, SL_REFINE_NONE, N);
    uint64_t gone[N / 8];
    for (size_t i = 0; i < N / 8; i++)
        gone[i] = id_of(8 * i);
    ck_ok(sl_index_delete(index, gone, N / 8));
    allow_every(1, 0);
    for (size_t row = 0; row < N; row++)
        if (row % 6 == 1) allow(row, 0);
    sl_filter *filter = filter_of_bits(index);
    ck_assert_uint_gt(sl_filter_count(filter), 4096);
    expect_ranges(index, metric, filter, 0.95);
    sl_filter_free(filter);
    allow_every(4, 9);
    filter = filter_of_bits(index);
    expect_ranges(index, metric, filter, 1);
    sl_filter_free(filter);
    /* All that are left, and none of the others. */
    ck_assert_uint_eq(range(index, queries, metric == SL_METRIC_L2 ? INFINITY : -INFINITY, NULL).results, N - N / 8);
    for (size_t i = 0; i < N / 8; i++)
        ck_assert(!found->has[gone[i]]);
    sl_index_free(index);
}
END_TEST

/* The radius itself is within; the next number nearer leaves the vector out. */
START_TEST(the_radius_is_within) {
    sl_metric metric = metrics[_i];
    sl_index *index = index_of(metric, SL_CODES_I8, SL_REFINE_F32, N);
    uint64_t ids[K];
    float scores[K];
    double nearest = metric == SL_METRIC_L2 ? -INFINITY : INFINITY;
    indexes_search(index, (vector_rows){queries, SL_F32, 1}, K, 100, ids, scores);
    for (size_t i = 0; i < K; i++) {
        (void)range(index, queries, (double)scores[i], NULL);
        ck_assert(found->has[ids[i]]);
        (void)range(index, queries, nextafter((double)scores[i], nearest), NULL);
        ck_assert(!found->has[ids[i]]);
    }
    ck_assert_uint_eq(range(index, queries, nearest, NULL).results, 0);
    ck_assert_uint_eq(range(index, queries, -nearest, NULL).results, N);
    sl_index_free(index);
}
END_TEST

/* A walk to few hits does less work than scoring all, and less with a small slack than with a large one. */
/* Each vector twice: a radius of the query's own score finds both, however the walk's scores are rounded. */
START_TEST(copies_are_within_their_own_score) {
    if (SANITIZED && _i) return; /* for its size */
    static float twice[2 * N * DIM];
    sl_index_params params;
    size_t missed = 0;
    memcpy(twice, x, sizeof twice / 2);
    memcpy(twice + N * DIM, x, sizeof twice / 2);
    indexes_params(&params, DIM, kinds[_i].metric);
    params.codes = kinds[_i].codes;
    params.refine = kinds[_i].refine;
    sl_index *index = indexes_make(&params, twice, SL_F32, 2 * N, NULL, 1);
    for (size_t row = 0; row < N; row += N / 20) {
        uint64_t ids[2];
        float scores[2];
        ck_ok(sl_index_search(index, x + row * DIM, SL_F32, 1, 0, 2, NULL, ids, scores, NULL));
        missed += range(index, x + row * DIM, (double)scores[1], NULL).results < 2;
    }
    ck_assert_uint_le(missed, 1);
    sl_index_free(index);
}
END_TEST

START_TEST(a_walk_saves_work) {
    static float scores[N];
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, N);
    allow_every(1, 0);
    sl_filter *filter = filter_of_bits(index);
    size_t work[2] = {0, 0};
    sl_searcher *searcher;
    ck_ok(sl_searcher_create(index, N, &searcher));
    for (size_t q = 0; q < SOME; q++) {
        (void)list_all(searcher, queries + q * DIM, filter, scores);
        for (int wide = 0; wide < 2; wide++) {
            sl_range_params params;
            sl_range_params_init(&params);
            params.slack = wide ? 1 : 0;
            params.ef = 16;
            work[wide] += range(index, queries + q * DIM, (double)scores[9], &params).evaluations;
        }
    }
    ck_assert_uint_lt(work[0], SOME * N / 5);
    ck_assert_uint_lt(2 * work[0], work[1]);
    sl_searcher_free(searcher);
    sl_filter_free(filter);
    sl_index_free(index);
}
END_TEST

START_TEST(the_function_ends_a_query) {
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, N);
    for (int exact = 0; exact < 2; exact++) {
        sl_range_params params;
        sl_search_stats stats;
        sl_range_params_init(&params);
        params.exact = exact;
        memset(found, 0, Q * sizeof *found);
        found[1].end_at = 5;
        ck_ok(sl_index_range(index, queries, SL_F32, 3, 0, -0.5, &params, take, found, &stats));
        ck_assert_uint_eq(found[1].count, 5);
        ck_assert_uint_gt(found[0].count, 100);
        ck_assert_uint_gt(found[2].count, 100);
        ck_assert_uint_eq(stats.results, found[0].count + 5 + found[2].count);
    }
    sl_index_free(index);
}
END_TEST

START_TEST(bad_input_is_named) {
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, 100);
    sl_index *other = index_of(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, 100);
    sl_range_params params;
    sl_range_params_init(&params);
    ck_fails(sl_index_range(NULL, queries, SL_F32, 1, 0, 0.5, NULL, take, found, NULL), SL_EINVAL, "index is NULL");
    ck_fails(sl_index_range(index, NULL, SL_F32, 1, 0, 0.5, NULL, take, found, NULL), SL_EINVAL, "queries is NULL");
    ck_fails(sl_index_range(index, queries, SL_F32, 1, 0, 0.5, NULL, NULL, found, NULL), SL_EINVAL, "fn is NULL");
    ck_fails(sl_index_range(index, queries, SL_F32, 1, 0, NAN, NULL, take, found, NULL), SL_EINVAL, "radius is NaN");
    ck_fails(sl_index_range(index, queries, SL_I8, 1, 0, 0.5, NULL, take, found, NULL), SL_ETYPE, "i8");
    ck_fails(sl_index_range(index, queries, SL_F32, 2, 7, 0.5, NULL, take, found, NULL), SL_EINVAL, "stride");
    params.ef = 0;
    ck_fails(sl_index_range(index, queries, SL_F32, 1, 0, 0.5, &params, take, found, NULL), SL_EINVAL, "ef is 0");
    params.ef = 64;
    params.slack = NAN;
    ck_fails(sl_index_range(index, queries, SL_F32, 1, 0, 0.5, &params, take, found, NULL), SL_EINVAL, "slack is");
    params.slack = 0;
    params.filter = filter_of_bits(other);
    ck_fails(sl_index_range(index, queries, SL_F32, 1, 0, 0.5, &params, take, found, NULL), SL_EINVAL, "another index");
    sl_filter_free((sl_filter *)(uintptr_t)params.filter);
    params.filter = NULL;
    params.progress = indexes_cancel;
    ck_fails(sl_index_range(index, queries, SL_F32, Q, 0, 0.5, &params, take, found, NULL), SL_ECANCELED, "");
    float bad[2 * DIM] = {1};
    bad[DIM + 3] = NAN;
    ck_fails(sl_index_range(index, bad, SL_F32, 2, 0, 2, NULL, take, found, NULL), SL_EVALUE, "query 1");
    ck_ok(sl_index_range(index, NULL, SL_F32, 0, 0, 0.5, NULL, take, found, NULL));
    sl_index_free(index);
    sl_index_free(other);
}
END_TEST

START_TEST(empty_ones) {
    sl_index *index = index_of(SL_METRIC_L2, SL_CODES_I8, SL_REFINE_NONE, 0);
    ck_assert_uint_eq(range(index, queries, INFINITY, NULL).results, 0);
    sl_index_free(index);
    index = index_of(SL_METRIC_L2, SL_CODES_I8, SL_REFINE_NONE, 20);
    allow_every(0, 0);
    sl_filter *filter = filter_of_bits(index);
    sl_range_params params;
    sl_range_params_init(&params);
    params.filter = filter;
    ck_assert_uint_eq(range(index, queries, INFINITY, &params).results, 0);
    ck_assert_uint_eq(range(index, queries, INFINITY, NULL).results, 20);
    sl_filter_free(filter);
    sl_index_free(index);
}
END_TEST

/* Mapped files of both layouts answer as the index in memory. */
START_TEST(a_mapped_file_answers_alike) {
    scratch place;
    scratch_open(&place);
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I4, SL_REFINE_NONE, N);
    sl_save_params params;
    sl_save_params_init(&params);
    params.layout = _i ? SL_LAYOUT_RECORDS : SL_LAYOUT_ARRAYS;
    ck_ok(sl_index_save(index, place.path, &params));
    sl_index *mapped = indexes_open(place.path, SL_PLACE_MAP);
    for (size_t q = 0; q < SOME; q++) {
        size_t count = range(index, queries + q * DIM, 0.3, NULL).results;
        memcpy(all, found, sizeof *all);
        ck_assert_uint_eq(range(mapped, queries + q * DIM, 0.3, NULL).results, count);
        ck_assert_mem_eq(all->has, found->has, sizeof all->has);
    }
    sl_index_free(mapped);
    sl_index_free(index);
    scratch_close(&place);
}
END_TEST

START_TEST(every_allocation_fails_once) {
    fault_allocator memory;
    fault_allocator_init(&memory, 0);
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    params.allocator = &memory.allocator;
    sl_index *index = indexes_make(&params, x, SL_F32, N, NULL, 1);
    size_t fails = 0;
    for (sl_status status = SL_ENOMEM; status != SL_OK; fails++) {
        memset(found, 0, sizeof *found);
        memory.calls = 0;
        memory.fail_at = fails + 1;
        status = sl_index_range(index, queries, SL_F32, 1, 0, 0.4, NULL, take, found, NULL);
        memory.fail_at = 0;
        ck_assert(status == SL_OK || status == SL_ENOMEM);
    }
    ck_assert_uint_ge(fails, 5);
    sl_index_free(index);
    ck_assert_uint_eq(memory.live_blocks, 0);
}
END_TEST

static int count_one(void *ctx, size_t query, uint64_t id, float score) {
    (void)query, (void)id, (void)score;
    ++*(size_t *)ctx;
    return 0;
}

/* More results than a search may ask for. */
START_TEST(results_without_number) {
    enum { MANY = 80000, FLAT = 2 };
    float *points = malloc(MANY * FLAT * sizeof *points);
    const float origin[FLAT] = {0, 0};
    size_t count, within = 0;
    for (size_t i = 0; i < MANY; i++) {
        points[FLAT * i] = (float)cos((double)i) * (float)i / MANY;
        points[FLAT * i + 1] = (float)sin((double)i) * (float)i / MANY;
    }
    sl_index_params params;
    indexes_params(&params, FLAT, SL_METRIC_L2);
    params.m = 4;
    params.ef_construction = 8;
    params.codes = SL_CODES_F32;
    sl_index *index = indexes_make(&params, points, SL_F32, MANY, NULL, 2);
    ck_ok(sl_index_range(index, origin, SL_F32, 1, 0, 0.81, NULL, count_one, (count = 0, &count), NULL));
    for (size_t i = 0; i < MANY; i++)
        within += (double)i / MANY <= 0.9;
    ck_assert_uint_gt(within, SL_MAX_EF);
    ck_assert_uint_ge(count + 2, within);
    ck_assert_uint_le(count, within + 2);
    sl_index_free(index);
    free(points);
}
END_TEST

START_TEST(threads_answer_alike) {
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I4, SL_REFINE_NONE, N);
    size_t counts[Q];
    sl_range_params params;
    sl_search_stats one, several;
    sl_range_params_init(&params);
    ck_ok(sl_index_range(index, queries, SL_F32, Q, 0, 0.4, &params, take, found, &one));
    for (size_t q = 0; q < Q; q++)
        counts[q] = found[q].count;
    memset(found, 0, Q * sizeof *found);
    params.threads = 4;
    ck_ok(sl_index_range(index, queries, SL_F32, Q, 0, 0.4, &params, take, found, &several));
    ck_assert_mem_eq(&one, &several, sizeof one);
    for (size_t q = 0; q < Q; q++)
        ck_assert_uint_eq(found[q].count, counts[q]);
    sl_index_free(index);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("range"), *threads = tcase_create("threads");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_checked_fixture(threads, set_up, tear_down);
    tcase_add_loop_test(tests, what_scores_so_is_given, 0, KINDS);
    tcase_add_loop_test(tests, filters_and_deletes_leave_out, 0, 3);
    tcase_add_loop_test(tests, the_radius_is_within, 0, 3);
    tcase_add_loop_test(tests, copies_are_within_their_own_score, 0, KINDS);
    tcase_add_test(tests, a_walk_saves_work);
    tcase_add_test(tests, the_function_ends_a_query);
    tcase_add_test(tests, bad_input_is_named);
    tcase_add_test(tests, empty_ones);
    tcase_add_loop_test(tests, a_mapped_file_answers_alike, 0, 2);
    tcase_add_test(tests, every_allocation_fails_once);
    tcase_add_test(tests, results_without_number);
    tcase_add_test(threads, threads_answer_alike);
    return check_main("range", (TCase *[]){tests, threads}, 2);
}
