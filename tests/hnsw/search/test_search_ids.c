/* Searches by stored ids, and searches with a threshold. */
#include "tests/hnsw/search/allowed_rows.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of results: those by ids, and those of a search with their vectors. */
static uint64_t asked[Q], by_id[Q * K], by_vector[Q * (K + 1)];
static float scores[Q * K], vector_scores[Q * (K + 1)];

static void ask_some(void) {
    for (size_t i = 0; i < Q; i++)
        asked[i] = id_of(1 + 97 * i);
}

/* The same as a search for k + 1 with the stored vectors, without each vector itself. */
static void expect_others(sl_index *index, sl_dtype dtype, const sl_search_params *params) {
    void *vectors = malloc(Q * DIM * 4);
    sl_search_stats stats;
    size_t results = 0;
    ck_ok(sl_index_get(index, asked, Q, dtype, vectors));
    ck_ok(sl_index_search(index, vectors, dtype, Q, 0, K + 1, params, by_vector, vector_scores, NULL));
    ck_ok(sl_index_search_ids(index, asked, Q, K, params, by_id, scores, &stats));
    for (size_t i = 0; i < Q; i++) {
        size_t kept = 0;
        for (size_t j = 0; j < K + 1 && kept < K; j++) {
            uint64_t id = by_vector[i * (K + 1) + j];
            if (id == asked[i]) continue;
            ck_assert_uint_eq(by_id[i * K + kept], id);
            if (id == SL_NO_ID)
                ck_assert(isnan(scores[i * K + kept]));
            else
                ck_assert(scores[i * K + kept] == vector_scores[i * (K + 1) + j]);
            results += id != SL_NO_ID;
            kept++;
        }
        ck_assert_uint_eq(kept, K);
    }
    ck_assert_uint_eq(stats.results, results);
    free(vectors);
}

/* A threshold cuts a search's row where its results become worse; a result of just this score stays. */
static void expect_cut(sl_index *index, sl_metric metric) {
    sl_search_params params;
    sl_search_stats stats;
    sl_search_params_init(&params);
    for (int probes = 0; probes < 2; probes++) {
        params.has_threshold = 0;
        params.probes = probes ? 8 : 0;
        ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, by_vector, vector_scores, NULL));
        params.has_threshold = 1;
        params.threshold = (double)vector_scores[4];
        size_t results = 0;
        ck_ok(sl_index_search(index, queries, SL_F32, Q, 0, K, &params, by_id, scores, &stats));
        for (size_t i = 0; i < Q * K; i++) {
            double score = (double)vector_scores[i];
            int stays = metric == SL_METRIC_L2 ? score <= params.threshold : score >= params.threshold;
            ck_assert_uint_eq(by_id[i], stays ? by_vector[i] : SL_NO_ID);
            ck_assert(stays ? scores[i] == vector_scores[i] : isnan(scores[i]) != 0);
            results += (size_t)stays;
        }
        ck_assert_uint_eq(stats.results, results);
        ck_assert(by_id[4] != SL_NO_ID && results < Q * K);
    }
    params.probes = 0;
    expect_others(index, SL_F32, &params);
}

START_TEST(others_are_found_and_rows_cut) {
    sl_metric metric = kinds[_i].metric;
    sl_index *index = index_of(metric, kinds[_i].codes, kinds[_i].refine, N);
    sl_search_params params;
    sl_search_params_init(&params);
    expect_others(index, SL_F32, NULL);
    params.ef = 200;
    params.rerank = 50;
    params.threads = 2;
    expect_others(index, SL_F32, &params);
    expect_cut(index, metric);
    sl_index_free(index);
}
END_TEST

START_TEST(integers_are_asked_as_they_are) {
    const sl_dtype dtypes[] = {SL_I8, SL_U8, SL_I16};
    sl_dtype dtype = dtypes[_i];
    void *rows = clusters_as(dtype, x, N * DIM);
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    params.dtype = dtype;
    params.codes = dtype == SL_I16 ? SL_CODES_I16 : SL_CODES_I8;
    sl_index *index = indexes_make(&params, rows, dtype, N, NULL, 1);
    for (size_t i = 0; i < Q; i++)
        asked[i] = 31 * i;
    expect_others(index, dtype, NULL);
    sl_index_free(index);
    free(rows);
}
END_TEST

/* A filter that refuses the vector itself leaves as many others as one that allows it. */
START_TEST(filters_and_deletes) {
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, N);
    sl_search_params params;
    sl_filter_params given;
    sl_filter *filter;
    sl_search_params_init(&params);
    sl_filter_params_init(&given);
    allow_every(3, 5);
    for (size_t i = 0; i < Q; i++)
        allow(row_of(asked[i]), (int)i % 2);
    given.bits = bits;
    given.bits_count = STEP * N;
    ck_ok(sl_filter_create(index, &given, &filter));
    params.filter = filter;
    expect_others(index, SL_F32, &params);
    for (size_t i = 0; i < Q * K; i++)
        ck_assert(by_id[i] != SL_NO_ID && is_allowed(by_id[i]) && by_id[i] != asked[i / K]);
    sl_filter_free(filter);
    uint64_t gone = id_of(8);
    ck_ok(sl_index_delete(index, &gone, 1));
    expect_others(index, SL_F32, NULL);
    for (size_t i = 0; i < Q * K; i++)
        ck_assert_uint_ne(by_id[i], gone);
    ck_fails(sl_index_search_ids(index, &gone, 1, K, NULL, by_id, scores, NULL), SL_ENOTFOUND, "is not in the index");
    sl_index_free(index);
}
END_TEST

/* More ids than are decoded at a time, each with one of three filters, or with none. */
START_TEST(each_id_has_its_filter) {
    enum { MANY = 1500 };
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, N);
    static uint64_t labels[MANY], found[MANY * K];
    static const sl_filter *filters[MANY];
    sl_filter *thirds[3];
    sl_search_params params;
    sl_search_params_init(&params);
    for (size_t i = 0; i < 3; i++) {
        for (size_t row = 0; row < N; row++)
            allow(row, row % 3 == i);
        thirds[i] = filter_of_bits(index);
    }
    for (size_t i = 0; i < MANY; i++) {
        labels[i] = id_of(i);
        filters[i] = i % 5 < 3 ? thirds[i % 5] : NULL;
    }
    params.filters = filters;
    ck_ok(sl_index_search_ids(index, labels, MANY, K, &params, found, NULL, NULL));
    for (size_t i = 0; i < MANY * K; i++) {
        ck_assert(found[i] != SL_NO_ID && found[i] != labels[i / K]);
        if (i / K % 5 < 3) ck_assert_uint_eq(row_of(found[i]) % 3, i / K % 5);
    }
    params.filters = NULL;
    params.filter = thirds[1];
    ck_ok(sl_index_search_ids(index, labels + 1496, 1, K, &params, by_id, NULL, NULL));
    ck_assert_mem_eq(by_id, found + 1496 * K, K * sizeof *by_id);
    for (size_t i = 0; i < 3; i++)
        sl_filter_free(thirds[i]);
    sl_index_free(index);
}
END_TEST

/* Duplicates of a vector are results; one vector alone has none. */
START_TEST(twins_are_others) {
    enum { TWINS = 30 };
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_L2);
    sl_index *index;
    ck_ok(sl_index_create(&params, &index));
    ck_ok(indexes_add(index, x, SL_F32, 1, NULL));
    const uint64_t first = 0;
    uint64_t ids[TWINS];
    float distances[TWINS];
    ck_ok(sl_index_search_ids(index, &first, 1, K, NULL, ids, distances, NULL));
    ck_assert(ids[0] == SL_NO_ID && isnan(distances[0]));
    for (size_t i = 1; i < TWINS; i++)
        ck_ok(indexes_add(index, x, SL_F32, 1, NULL));
    for (uint64_t i = 0; i < TWINS; i++) {
        uint64_t sum = i;
        ck_ok(sl_index_search_ids(index, &i, 1, TWINS, NULL, ids, distances, NULL));
        for (size_t j = 0; j < TWINS - 1; j++) {
            ck_assert(ids[j] != i && ids[j] < TWINS);
            sum += ids[j];
        }
        ck_assert_uint_eq(sum, TWINS * (TWINS - 1) / 2);
        ck_assert_uint_eq(ids[TWINS - 1], SL_NO_ID);
    }
    sl_index_free(index);
}
END_TEST

/* More ids than are decoded at once, from a mapped file, with one that is not there. */
START_TEST(many_ids_of_a_file) {
    scratch place;
    scratch_open(&place);
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I4, SL_REFINE_NONE, N);
    uint64_t *ids = malloc(N * sizeof *ids), *one = malloc(N * K * sizeof *one), *two = malloc(N * K * sizeof *two);
    for (size_t i = 0; i < N; i++)
        ids[i] = id_of(i);
    ck_ok(indexes_save(index, place.path));
    sl_index *mapped = indexes_open(place.path, SL_PLACE_MAP);
    ck_ok(sl_index_search_ids(index, ids, N, K, NULL, one, NULL, NULL));
    ck_ok(sl_index_search_ids(mapped, ids, N, K, NULL, two, NULL, NULL));
    ck_assert_mem_eq(one, two, N * K * sizeof *one);
    for (size_t i = 0; i < N * K; i++)
        ck_assert_uint_ne(one[i], ids[i / K]);
    ids[N - 1] = 1;
    ck_fails(sl_index_search_ids(mapped, ids, N, K, NULL, two, NULL, NULL), SL_ENOTFOUND, "id 1 is not");
    free(ids);
    free(one);
    free(two);
    sl_index_free(mapped);
    sl_index_free(index);
    scratch_close(&place);
}
END_TEST

START_TEST(bad_input_is_named) {
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, 100);
    sl_search_params params;
    sl_search_params_init(&params);
    asked[0] = id_of(3);
    ck_fails(sl_index_search_ids(NULL, asked, 1, K, NULL, by_id, scores, NULL), SL_EINVAL, "index is NULL");
    ck_fails(sl_index_search_ids(index, NULL, 1, K, NULL, by_id, scores, NULL), SL_EINVAL, "NULL");
    ck_fails(sl_index_search_ids(index, asked, 1, K, NULL, NULL, scores, NULL), SL_EINVAL, "NULL");
    ck_fails(sl_index_search_ids(index, asked, 1, 0, NULL, by_id, scores, NULL), SL_EINVAL, "k is 0");
    ck_fails(sl_index_search_ids(index, asked, 1, SL_MAX_EF, NULL, by_id, scores, NULL), SL_EINVAL, "give 1 to 65535");
    params.recall = 0.9;
    ck_fails(sl_index_search_ids(index, asked, 1, K, &params, by_id, scores, NULL), SL_ENOTFOUND, "");
    params.recall = 0;
    params.has_threshold = 1;
    params.threshold = NAN;
    ck_fails(sl_index_search_ids(index, asked, 1, K, &params, by_id, scores, NULL), SL_EINVAL, "threshold is NaN");
    ck_fails(sl_index_search(index, queries, SL_F32, 1, 0, K, &params, by_id, scores, NULL), SL_EINVAL,
             "threshold is NaN");
    ck_ok(sl_index_search_ids(index, NULL, 0, K, NULL, NULL, NULL, NULL));
    sl_index_free(index);
}
END_TEST

START_TEST(threads_answer_alike) {
    sl_index *index = index_of(SL_METRIC_COSINE, SL_CODES_I8, SL_REFINE_NONE, N);
    sl_search_params params;
    sl_search_params_init(&params);
    ck_ok(sl_index_search_ids(index, asked, Q, K, &params, by_vector, NULL, NULL));
    params.threads = 4;
    ck_ok(sl_index_search_ids(index, asked, Q, K, &params, by_id, NULL, NULL));
    ck_assert_mem_eq(by_vector, by_id, sizeof by_id);
    sl_index_free(index);
}
END_TEST

static void set_up(void) {
    rows_set_up();
    ask_some();
}

int main(void) {
    TCase *tests = tcase_create("search_ids"), *threads = tcase_create("threads");
    tcase_add_checked_fixture(tests, set_up, rows_tear_down);
    tcase_add_checked_fixture(threads, set_up, rows_tear_down);
    tcase_add_loop_test(tests, others_are_found_and_rows_cut, 0, KINDS);
    tcase_add_loop_test(tests, integers_are_asked_as_they_are, 0, 3);
    tcase_add_test(tests, filters_and_deletes);
    tcase_add_test(tests, each_id_has_its_filter);
    tcase_add_test(tests, twins_are_others);
    tcase_add_test(tests, many_ids_of_a_file);
    tcase_add_test(tests, bad_input_is_named);
    tcase_add_test(threads, threads_answer_alike);
    return check_main("search_ids", (TCase *[]){tests, threads}, 2);
}
