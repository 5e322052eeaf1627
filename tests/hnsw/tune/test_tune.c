/* Settings for a recall: tuned on some queries and right for others, stored, refused and read back. */
#include "base/random.h"
#include "hnsw/graph/partition.h"
#include "hnsw/search/settings.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/faults.h"
#include "tests/support/hostile.h"
#include "tests/support/indexes.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 24, N = 600, QUERIES = 60, K = 10 };

/* ---------------------------------------------------------------------------------------------------------------
 * Queries that were not tuned with
 * ------------------------------------------------------------------------------------------------------------- */

enum { MANY = 3000, HALF = 1500, FEW = 100 };

/* `own`: tuned without truth, against the vectors as the index holds them. */
static const struct kind {
    sl_metric metric;
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
    int own;
} kinds[] = {
    {SL_METRIC_COSINE, SL_F32, SL_CODES_I8, SL_REFINE_F32, 0},
    {SL_METRIC_L2, SL_F32, SL_CODES_I8, SL_REFINE_NONE, 1},
    {SL_METRIC_IP, SL_F32, SL_CODES_F32, SL_REFINE_NONE, 1},
    {SL_METRIC_L2, SL_U8, SL_CODES_I8, SL_REFINE_NONE, 1},
    {SL_METRIC_COSINE, SL_F16, SL_CODES_I8, SL_REFINE_BF16, 1},
    {SL_METRIC_COSINE, SL_F32, SL_CODES_I4, SL_REFINE_NONE, 1},
    {SL_METRIC_L2, SL_F32, SL_CODES_I4, SL_REFINE_F32, 0},
};

/* Recall of searches for this recall, with so many queries a call. A large batch may scan where a small one walks, if
 * tuning measured the scan as faster here. The batch then finds other vectors. */
static double recall_at(const sl_index *index, vector_rows queries, const uint64_t *truth, size_t at_once, size_t k,
                        double recall) {
    uint64_t *found = malloc(queries.count * k * sizeof *found);
    ck_assert_ptr_nonnull(found);
    sl_search_params search;
    sl_search_params_init(&search);
    search.ef = 0;
    search.recall = recall;
    search.threads = 2;
    const size_t row = indexes_stats(index).dim * sl_dtype_size(queries.dtype);
    for (size_t i = 0, n; i < queries.count; i += n) {
        n = queries.count - i < at_once ? queries.count - i : at_once;
        ck_ok(sl_index_search(index, (const char *)queries.rows + i * row, queries.dtype, n, 0, k, &search,
                              found + i * k, NULL, NULL));
    }
    double share = indexes_recall(found, truth, queries.count, k);
    free(found);
    return share;
}

/* The truth among the vectors that the index gives back. */
static void exact_of_own(sl_index *index, const struct kind *kind, const void *queries, sl_dtype dtype, size_t nq,
                         uint64_t *truth) {
    size_t row = DIM * sl_dtype_size(dtype);
    unsigned char *own = malloc(MANY * row);
    uint64_t *ids = malloc(MANY * sizeof *ids);
    ck_assert(own && ids);
    for (size_t i = 0; i < MANY; i++)
        ids[i] = i;
    ck_ok(sl_index_get(index, ids, MANY, dtype, own));
    indexes_exact(kind->metric, DIM, (vector_rows){own, dtype, MANY}, (vector_rows){queries, dtype, nq}, K, truth);
    free(own);
    free(ids);
}

/* Tunes on HALF queries; truth NULL: the index finds it. */
static void tune_for_four(sl_index *index, const void *queries, sl_dtype dtype, const uint64_t *truth) {
    static const double targets[] = {0.95, 0.8, 0.9, 0.98};
    sl_tune_params with;
    sl_tune_params_init(&with);
    with.targets = targets;
    with.target_count = 4;
    sl_tune_report report = {.struct_size = sizeof report};
    ck_ok(sl_index_tune(index, queries, dtype, HALF, 0, truth, K, &with, &report));
    ck_assert_uint_eq(report.targets, 4);
    ck_assert_uint_eq(report.reached, 4);
    ck_assert_uint_eq(report.first, 0);
    ck_assert_uint_ge(report.passes, 6);
    ck_assert_uint_gt(report.queries_needed, 100);
}

START_TEST(holds_on_other_queries) {
    if (SANITIZED && _i % 2) return; /* for its size */
    const struct kind *kind = &kinds[_i];
    float *x = clusters_make(MANY + 2 * HALF, DIM, 0.3, 11);
    unsigned char *typed = clusters_as(kind->dtype, x, (MANY + 2 * HALF) * DIM);
    size_t row = DIM * sl_dtype_size(kind->dtype);
    /* Exact comparison uses floats, or the index's own integers. */
    sl_dtype exact = kind->dtype == SL_U8 ? SL_U8 : SL_F32;
    unsigned char *wide = malloc((MANY + 2 * HALF) * DIM * sl_dtype_size(exact));
    uint64_t *truth = malloc(2 * HALF * K * sizeof *truth);
    ck_assert(wide && truth);
    if (exact == kind->dtype)
        memcpy(wide, typed, (MANY + 2 * HALF) * row);
    else
        ck_ok(sl_convert(typed, kind->dtype, wide, exact, (MANY + 2 * HALF) * DIM));
    const unsigned char *asked = wide + MANY * DIM * sl_dtype_size(exact);
    sl_index_params params;
    indexes_params(&params, DIM, kind->metric);
    params.dtype = kind->dtype;
    params.codes = kind->codes;
    params.refine = kind->refine;
    sl_index *index = indexes_make(&params, typed, kind->dtype, MANY, NULL, 2);
    if (kind->own)
        exact_of_own(index, kind, asked, exact, 2 * HALF, truth);
    else
        indexes_exact(kind->metric, DIM, (vector_rows){wide, exact, MANY}, (vector_rows){asked, exact, 2 * HALF}, K,
                      truth);

    tune_for_four(index, typed + MANY * row, kind->dtype, kind->own ? NULL : truth);
    /* Distances between integers tie, and a search may keep any of those that tie with the k-th. */
    const double same = kind->dtype == SL_U8 ? 0.003 : 1e-9;
    const vector_rows first = {asked, exact, HALF};
    const vector_rows second = {asked + HALF * DIM * sl_dtype_size(exact), exact, HALF};
    double before = 0;
    for (size_t i = 0; i < 4; i++) {
        sl_tuned tuned = {.struct_size = sizeof tuned};
        ck_ok(sl_index_get_tuned(index, i, &tuned));
        ck_assert(tuned.target > before && tuned.recall >= tuned.target && tuned.standard_error > 0);
        double here = recall_at(index, first, truth, FEW, K, tuned.target);
        double other = recall_at(index, second, truth + HALF * K, FEW, K, tuned.target);
        double batch = recall_at(index, second, truth + HALF * K, HALF, K, tuned.target);
        ck_assert_msg(fabs(here - tuned.recall) < same, "kind %d: %.4f, not %.4f", _i, here, tuned.recall);
        ck_assert_msg(batch >= tuned.target - 0.005, "kind %d: %g gave %.4f in a batch", _i, tuned.target, batch);
        ck_assert_msg(other >= tuned.target - 0.005, "kind %d: %g gave %.4f", _i, tuned.target, other);
        ck_assert_msg(fabs(other - tuned.recall) <= 0.012, "kind %d: %.4f, then %.4f", _i, tuned.recall, other);
        before = tuned.target;
    }
    sl_index_free(index);
    free(truth);
    free(wide);
    free(typed);
    free(x);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * A small index
 * ------------------------------------------------------------------------------------------------------------- */

static scratch place;
static float *x, *queries;
static fault_allocator memory;
static sl_index *idx;

static sl_index *small(size_t m, size_t ef_construction, sl_refine refine) {
    sl_index_params params;
    indexes_params(&params, DIM, SL_METRIC_COSINE);
    params.m = m;
    params.ef_construction = ef_construction;
    params.refine = refine;
    params.allocator = &memory.allocator;
    return indexes_make(&params, x, SL_F32, N, NULL, 1);
}

static void set_up(void) {
    scratch_open(&place);
    x = clusters_make(N + 10 * QUERIES, DIM, 0.3, 3);
    queries = x + N * DIM;
    fault_allocator_init(&memory, 0);
    idx = small(4, 16, SL_REFINE_F32);
}

static void tear_down(void) {
    sl_index_free(idx);
    ck_assert_uint_eq(memory.live_blocks, 0);
    free(x);
    scratch_close(&place);
}

/* Tunes for k with these targets, ended by 0, on one thread. */
static sl_status tune(sl_index *index, size_t k, const double *targets) {
    sl_tune_params params;
    sl_tune_params_init(&params);
    params.threads = 1;
    params.targets = targets;
    while (targets[params.target_count] > 0)
        params.target_count++;
    return sl_index_tune(index, queries, SL_F32, QUERIES, 0, NULL, k, &params, NULL);
}

static const double two[] = {0.9, 0.7, 0};

static sl_tuned tuned_for(const sl_index *index, size_t k, double recall) {
    sl_tuned tuned = {.struct_size = sizeof tuned};
    ck_ok(sl_index_find_tuned(index, k, recall, &tuned));
    return tuned;
}

static sl_status ask(sl_index *index, size_t k, double recall) {
    uint64_t found[N];
    sl_search_params search;
    sl_search_params_init(&search);
    search.recall = recall;
    return sl_index_search(index, queries, SL_F32, 1, 0, k, &search, found, NULL, NULL);
}

START_TEST(finds_what_serves) {
    sl_tuned none = {.struct_size = sizeof none};
    ck_fails(ask(idx, K, 0.9), SL_ENOTFOUND, "holds no tuned settings for recall 0.9; tune the index");
    ck_fails(sl_index_get_tuned(idx, 0, &none), SL_ENOTFOUND, "settings 0; the index holds 0");
    ck_ok(tune(idx, K, two));
    ck_ok(tune(idx, 2 * K, two));
    ck_assert_uint_eq(indexes_stats(idx).tuned, 4);
    ck_assert(indexes_tuned(idx, 0).target == 0.7 && indexes_tuned(idx, 1).target == 0.9);
    ck_assert(indexes_tuned(idx, 1).k == K && indexes_tuned(idx, 2).k == 2 * K);
    ck_assert(indexes_tuned(idx, 1).n == N && indexes_tuned(idx, 1).queries == QUERIES);
    /* Between two targets the higher one serves; a recall from a float is the same. */
    ck_assert(tuned_for(idx, K, 0.75).target == 0.9);
    ck_assert(tuned_for(idx, K, 0.01).target == 0.7);
    ck_assert(tuned_for(idx, K, (double)0.7f).target == 0.7 && tuned_for(idx, K, (double)0.9f).target == 0.9);
    ck_fails(ask(idx, K, 0.91), SL_ENOTFOUND, "0.9 is the highest");
    /* For fewer neighbours, the settings measured for them serve; for more, none. */
    for (size_t k = 1; k < 2 * K; k++) {
        const sl_tuned own = indexes_tuned(idx, 1), wider = indexes_tuned(idx, 3);
        if (k <= K && k >= own.least_k)
            ck_assert_uint_eq(tuned_for(idx, k, 0.9).k, K);
        else if (k >= wider.least_k)
            ck_assert_uint_eq(tuned_for(idx, k, 0.9).k, 2 * K);
        else
            ck_fails(ask(idx, k, 0.9), SL_ENOTFOUND, "no tuned settings for recall 0.9 at k");
    }
    ck_fails(ask(idx, 2 * K + 1, 0.7), SL_ENOTFOUND, "at k 21, but for k 20");
    ck_fails(ask(idx, K, -0.5), SL_EINVAL, "recall is -0.5");
    ck_fails(ask(idx, K, 1.5), SL_EINVAL, "recall is 1.5");
    ck_fails(ask(idx, K, (double)NAN), SL_EINVAL, "recall is");
    ck_fails(ask(idx, 0, 0.9), SL_EINVAL, "k is 0");
    ck_fails(sl_index_find_tuned(idx, 0, 0.9, &none), SL_EINVAL, "k is 0");
    ck_fails(sl_index_find_tuned(idx, K, 0, &none), SL_EINVAL, "recall is 0");
    ck_fails(sl_index_find_tuned(NULL, K, 0.9, &none), SL_EINVAL, "NULL");
    ck_fails(sl_index_get_tuned(NULL, 0, &none), SL_EINVAL, "NULL");
    ck_fails(sl_index_get_tuned(idx, 0, NULL), SL_EINVAL, "NULL");
    ck_fails(sl_index_get_tuned(idx, 4, &none), SL_ENOTFOUND, "holds 4");
}
END_TEST

/* The share of the k nearest among results for fewer, for which settings say that they serve. */
START_TEST(fewer_neighbours_are_served_as_measured) {
    enum { ALL = 10 * QUERIES };
    uint64_t truth[ALL * K];
    indexes_exact(SL_METRIC_COSINE, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){queries, SL_F32, ALL}, K, truth);
    ck_ok(sl_index_tune(idx, queries, SL_F32, ALL, 0, truth, K, NULL, NULL));
    sl_tuned tuned = tuned_for(idx, K, 0.9);
    ck_assert_uint_lt(tuned.least_k, K);
    for (size_t k = tuned.least_k; k <= K; k++) {
        uint64_t nearest[ALL * K];
        for (size_t i = 0; i < ALL * k; i++)
            nearest[i] = truth[i / k * K + i % k];
        ck_assert(recall_at(idx, (vector_rows){queries, SL_F32, ALL}, nearest, ALL, k, 0.9) >= 0.9 - 1e-9);
    }
}
END_TEST

/* ef and rerank of the settings replace the given ones, also with a filter. */
START_TEST(searches_as_with_its_settings) {
    enum { WORDS = (N + 63) / 64 };
    ck_ok(tune(idx, K, two));
    idx->graph.tuned[1].stop = 0.125f;
    idx->graph.tuned[1].ef_alone = idx->graph.tuned[1].ef;
    sl_tuned tuned = tuned_for(idx, K, 0.9);
    ck_assert(tuned.stop == 0.125);
    uint64_t bits[WORDS], found[2][QUERIES * K];
    sl_search_stats stats[2];
    for (size_t i = 0; i < WORDS; i++)
        bits[i] = UINT64_C(0x5555555555555555);
    for (size_t filtered = 0; filtered < 2; filtered++) {
        for (size_t by_recall = 0; by_recall < 2; by_recall++) {
            sl_search_params search;
            sl_search_params_init(&search);
            search.ef = by_recall ? 1 : tuned.ef;
            search.rerank = by_recall ? 1 : tuned.rerank;
            search.stop = by_recall ? 0 : tuned.stop;
            search.recall = by_recall ? 0.85 : 0;
            search.accept_bits = filtered ? bits : NULL;
            search.accept_bits_count = filtered ? N : 0;
            ck_ok(sl_index_search(idx, queries, SL_F32, QUERIES, 0, K, &search, found[by_recall], NULL,
                                  &stats[by_recall]));
        }
        ck_assert_mem_eq(found[0], found[1], sizeof found[0]);
        ck_assert_uint_eq(stats[0].evaluations, stats[1].evaluations);
    }
    sl_searcher *searcher;
    sl_search_params search;
    sl_search_params_init(&search);
    search.recall = 0.9;
    ck_ok(sl_searcher_create(idx, tuned.ef, &searcher));
    ck_ok(sl_searcher_search(searcher, queries, SL_F32, K, &search, found[0], NULL, NULL));
    sl_searcher_free(searcher);
    ck_ok(sl_searcher_create(idx, tuned.ef - 1, &searcher));
    ck_fails(sl_searcher_search(searcher, queries, SL_F32, K, &search, found[0], NULL, NULL), SL_EINVAL,
             "tuned for this recall");
    sl_searcher_free(searcher);
    /* A program from before there was a recall to ask for. */
    memset(&search, 0xee, sizeof search);
    sl_search_params_init_sized(&search, offsetof(sl_search_params, recall));
    ck_ok(sl_index_search(idx, queries, SL_F32, 1, 0, K, &search, found[0], NULL, NULL));
}
END_TEST

START_TEST(threads_find_the_same) {
    for (size_t run = 0; run < 2; run++) {
        sl_tune_params params;
        sl_tune_params_init(&params);
        params.threads = run ? 4 : 1;
        ck_ok(sl_index_tune(idx, queries, SL_F32, QUERIES, 0, NULL, run ? 9 : 10, &params, NULL));
        ck_ok(sl_index_tune(idx, queries, SL_F32, QUERIES, 0, NULL, 10, &params, NULL));
        static sl_tuned first[10];
        for (size_t i = 0; i < 10; i++) {
            sl_tuned now = indexes_tuned(idx, (run ? 10 : 0) + i);
            if (!run) first[i] = now;
            ck_same_tuned(&first[i], &now);
        }
    }
    ck_assert_uint_eq(indexes_stats(idx).tuned, 20);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Out of reach
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(says_what_stands_in_the_way) {
    static const double high[] = {0.5, 0.9999, 0};
    enum { ALL = 10 * QUERIES };
    uint64_t truth[ALL * K];
    sl_tune_params params;
    sl_tune_report report = {.struct_size = sizeof report};
    indexes_exact(SL_METRIC_COSINE, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){queries, SL_F32, ALL}, K, truth);

    /* Codes lose neighbours that no search finds, beside the truth of the vectors themselves. */
    sl_index *index = small(16, 100, SL_REFINE_NONE);
    sl_tune_params_init(&params);
    params.targets = high;
    params.target_count = 2;
    ck_ok(sl_index_tune(index, queries, SL_F32, ALL, 0, truth, K, &params, &report));
    ck_assert_uint_eq(report.reached, 1);
    sl_tuned missed = indexes_tuned(index, 1);
    ck_assert_int_eq(missed.limit, SL_LIMIT_CODES);
    ck_assert(missed.recall > 0.9 && missed.recall < 0.9999 && missed.least_k == K);
    ck_fails(ask(index, K, 0.99995), SL_ENOTFOUND, "was out of reach");
    ck_fails(ask(index, K, 0.999), SL_ENOTFOUND, "finer refine or codes");
    ck_fails(ask(index, K, 0.8), SL_ENOTFOUND, "none that the index was tuned for");
    sl_index_free(index);

    /* Links that lead nowhere. */
    index = small(4, 16, SL_REFINE_F32);
    memset(sl_links(&index->graph, 1), 0xff, (N - 1) * index->graph.m0 * sizeof(uint32_t));
    ck_ok(sl_index_tune(index, queries, SL_F32, ALL, 0, truth, K, &params, NULL));
    ck_assert_int_eq(indexes_tuned(index, 1).limit, SL_LIMIT_GRAPH);
    ck_fails(ask(index, K, 0.9999), SL_ENOTFOUND, "larger m");
    sl_index_free(index);

    /* A search that may not go deep. */
    params.max_ef = K + 2;
    ck_ok(sl_index_tune(idx, queries, SL_F32, ALL, 0, truth, K, &params, NULL));
    ck_assert_int_eq(indexes_tuned(idx, 1).limit, SL_LIMIT_EF);
    ck_assert_uint_le(indexes_tuned(idx, 1).ef, K + 2);
    ck_fails(ask(idx, K, 0.9999), SL_ENOTFOUND, "max_ef");
    for (int limit = SL_LIMIT_NONE; limit <= SL_LIMIT_EF; limit++)
        ck_assert(*sl_tune_limit_name((sl_tune_limit)limit) != '?' && *sl_tune_limit_text((sl_tune_limit)limit) != '?');
    ck_assert_str_eq(sl_tune_limit_name((sl_tune_limit)4), "?");
    ck_assert_str_eq(sl_tune_limit_text((sl_tune_limit)-1), "?");
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Refused
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status tune_with(const sl_tune_params *params, const uint64_t *truth, size_t nq, size_t k) {
    return sl_index_tune(idx, queries, SL_F32, nq, 0, truth, k, params, NULL);
}

START_TEST(refuses) {
    uint64_t truth[QUERIES * K];
    double targets[SL_MAX_TARGETS + 1];
    sl_tune_params params;
    sl_tune_params_init(&params);
    ck_ok(tune(idx, K, two));
    ck_fails(sl_index_tune(NULL, queries, SL_F32, QUERIES, 0, NULL, K, NULL, NULL), SL_EINVAL, "NULL");
    ck_fails(sl_index_tune(idx, NULL, SL_F32, QUERIES, 0, NULL, K, NULL, NULL), SL_EINVAL, "NULL");
    ck_fails(tune_with(&params, NULL, QUERIES, 0), SL_EINVAL, "k is 0");
    ck_fails(tune_with(&params, NULL, QUERIES, SL_MAX_EF + 1), SL_EINVAL, "k is 65537");
    ck_fails(tune_with(&params, NULL, QUERIES, N + 1), SL_EINVAL, "holds 600 vectors");
    ck_fails(tune_with(&params, NULL, SL_TUNE_LEAST_QUERIES - 1, K), SL_EINVAL, "49 queries");
    ck_fails(sl_index_tune(idx, queries, SL_U8, QUERIES, 0, NULL, K, NULL, NULL), SL_ETYPE, "");
    ck_fails(sl_index_tune(idx, queries, SL_F32, QUERIES, 3, NULL, K, NULL, NULL), SL_EINVAL, "stride");
    params.max_ef = K - 1;
    ck_fails(tune_with(&params, NULL, QUERIES, K), SL_EINVAL, "max_ef is 9");
    params.max_ef = SL_MAX_EF + 1;
    ck_fails(tune_with(&params, NULL, QUERIES, K), SL_EINVAL, "max_ef is 65537");
    params.max_ef = 0;
    params.target_count = 1;
    ck_fails(tune_with(&params, NULL, QUERIES, K), SL_EINVAL, "targets is NULL");
    params.targets = targets;
    params.target_count = 0;
    ck_fails(tune_with(&params, NULL, QUERIES, K), SL_EINVAL, "0 targets");
    params.target_count = SL_MAX_TARGETS + 1;
    ck_fails(tune_with(&params, NULL, QUERIES, K), SL_EINVAL, "65 targets");
    const double wrong[] = {0, -1, 1.01, (double)NAN};
    params.target_count = 2;
    targets[0] = 1;
    for (size_t i = 0; i < 4; i++) {
        targets[1] = wrong[i];
        ck_fails(tune_with(&params, NULL, QUERIES, K), SL_EINVAL, "target 1 is");
    }
    indexes_exact(SL_METRIC_COSINE, DIM, (vector_rows){x, SL_F32, N}, (vector_rows){queries, SL_F32, QUERIES}, K,
                  truth);
    params.target_count = 1;
    truth[3 * K + 4] = truth[3 * K];
    ck_fails(tune_with(&params, truth, QUERIES, K), SL_EINVAL, "truth of query 3 names id");
    truth[3 * K + 4] = N;
    ck_fails(tune_with(&params, truth, QUERIES, K), SL_ENOTFOUND, "truth of query 3");
    sl_tune_report report = {.struct_size = 0};
    ck_fails(sl_index_tune(idx, queries, SL_F32, QUERIES, 0, NULL, K, NULL, &report), SL_EINVAL, "sl_tune_report");
    queries[5 * DIM] = NAN;
    ck_fails(tune_with(NULL, NULL, QUERIES, K), SL_EVALUE, "query 5");
    params.struct_size = 0;
    ck_fails(tune_with(&params, NULL, QUERIES, K), SL_EINVAL, "sl_tune_params_init");
    /* Settings tuned before are there still. */
    ck_assert_uint_eq(indexes_stats(idx).tuned, 2);
    ck_assert(tuned_for(idx, K, 0.9).target == 0.9);
}
END_TEST

START_TEST(stores_so_many) {
    double targets[SL_MAX_TARGETS + 1] = {0};
    for (size_t i = 0; i < SL_MAX_TARGETS; i++)
        targets[i] = 0.2 + (double)i / 1000;
    sl_tuned_record records[SL_MAX_TARGETS];
    size_t first;
    for (uint32_t k = 1; k <= SL_MAX_TUNED / SL_MAX_TARGETS; k++) {
        for (size_t i = 0; i < SL_MAX_TARGETS; i++)
            records[i] = (sl_tuned_record){.target = targets[i], .k = 2 * k, .least_k = 1, .ef = 2 * k};
        ck_ok(sl_settings_put(idx, records, SL_MAX_TARGETS, &first));
        ck_assert_uint_eq(first, (k - 1) * SL_MAX_TARGETS);
    }
    ck_fails(tune(idx, 3, two), SL_ELIMIT, "an index stores up to 4096");
    ck_ok(tune(idx, 2, targets));
    ck_assert_uint_eq(indexes_stats(idx).tuned, SL_MAX_TUNED);
    ck_assert(indexes_tuned(idx, SL_MAX_TARGETS - 1).queries == QUERIES &&
              indexes_tuned(idx, SL_MAX_TARGETS).queries == 0);
}
END_TEST

typedef struct stop {
    uint64_t last;
    size_t calls, at;
} stop;

static int stop_at(void *ctx, uint64_t done, uint64_t total) {
    stop *s = ctx;
    ck_assert(done >= s->last && done <= total);
    s->last = done;
    return ++s->calls == s->at;
}

START_TEST(can_be_cancelled) {
    stop s = {.at = 1};
    sl_tune_params params;
    sl_tune_params_init(&params);
    params.progress = stop_at;
    params.progress_ctx = &s;
    for (params.threads = 1; params.threads < 3; params.threads++) {
        s.calls = 0;
        s.last = 0;
        ck_fails(tune_with(&params, NULL, QUERIES, K), SL_ECANCELED, "cancelled");
    }
    ck_assert_uint_eq(indexes_stats(idx).tuned, 0);
    s = (stop){0};
    ck_ok(tune_with(&params, NULL, QUERIES, K));
    ck_assert_uint_gt(s.calls, 1);
}
END_TEST

/* Every allocation failing in turn. */
START_TEST(memory_may_run_out) {
    size_t at = 1, blocks = memory.live_blocks;
    for (;; at++) {
        memory.calls = 0;
        memory.fail_at = at;
        sl_status status = tune(idx, 3, two);
        int failed = memory.calls >= at;
        memory.fail_at = 0;
        if (!failed) {
            ck_ok(status);
            break;
        }
        ck_fails(status, SL_ENOMEM, "cannot allocate");
        ck_assert_uint_eq(memory.live_blocks, blocks);
        ck_assert_uint_eq(indexes_stats(idx).tuned, 0);
    }
    ck_assert_uint_gt(at, 12);
    ck_assert_uint_eq(memory.live_blocks, blocks + 1);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Files
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status open_in(sl_place where, sl_index **out) {
    sl_open_params params;
    sl_open_params_init(&params);
    params.place = where;
    params.allocator = &memory.allocator;
    return sl_index_open(place.path, &params, out);
}

START_TEST(a_file_keeps_them) {
    sl_index *opened;
    /* An old file has no section of settings. */
    ck_ok(sl_index_save(idx, place.path, NULL));
    for (int where = SL_PLACE_DRAM; where <= SL_PLACE_MAP; where++) {
        ck_ok(open_in((sl_place)where, &opened));
        ck_assert_uint_eq(indexes_stats(opened).tuned, 0);
        sl_index_free(opened);
    }
    uint64_t bytes = indexes_stats(idx).bytes_total;
    ck_ok(tune(idx, K, two));
    ck_assert_uint_gt(indexes_stats(idx).bytes_total, bytes);
    ck_ok(sl_index_save(idx, place.path, NULL));
    sl_tuned wanted = indexes_tuned(idx, 1);
    for (int where = SL_PLACE_DRAM; where <= SL_PLACE_MAP; where++) {
        ck_ok(open_in((sl_place)where, &opened));
        sl_tuned got = tuned_for(opened, K, 0.9);
        ck_same_tuned(&got, &wanted);
        ck_assert_uint_eq(indexes_stats(opened).tuned, 2);
        ck_ok(ask(opened, K, 0.9));
        /* A mapped index is tuned and saved over its own file. */
        ck_ok(tune(opened, 5, two));
        ck_ok(sl_index_save(opened, place.path, NULL));
        indexes_sound(opened);
        sl_index_free(opened);
        ck_ok(open_in(SL_PLACE_MAP, &opened));
        ck_assert_uint_eq(tuned_for(opened, 5, 0.9).k, 5);
        ck_assert_uint_eq(indexes_stats(opened).tuned, 4);
        indexes_sound(opened);
        sl_index_free(opened);
        ck_ok(sl_index_save(idx, place.path, NULL));
    }
    /* Vectors added later do not change the settings. The settings say how many vectors they were measured with. */
    ck_ok(indexes_add(idx, queries, SL_F32, QUERIES, NULL));
    ck_assert_uint_eq(tuned_for(idx, K, 0.9).n, N);
    ck_ok(ask(idx, K, 0.9));
}
END_TEST

/* Writes a changed record, or a changed size, with checksums that are right. */
static void forge(const unsigned char *valid, size_t size, size_t at, const void *value, size_t width) {
    unsigned char *changed = malloc(size);
    ck_assert_ptr_nonnull(changed);
    memcpy(changed, valid, size);
    memcpy(changed + at, value, width);
    hostile_seal(changed, size);
    file_write(place.path, changed, size);
    free(changed);
}

#define WRONG(field, value)                                                                                            \
    { offsetof(sl_tuned_record, field), sizeof((sl_tuned_record *)0)->field, value }

/* Doubles, by their bits. */
#define NOT_A_NUMBER UINT64_C(0x7ff8000000000000)
#define INFINITE     UINT64_C(0x7ff0000000000000)
#define OVER_ONE     UINT64_C(0x3ff0000000000001)
#define MINUS_ONE    UINT64_C(0xbff0000000000000)

/* Values that no record may hold. */
static const struct {
    size_t at, width;
    uint64_t value;
} wrong[] = {WRONG(target, 0),
             WRONG(target, NOT_A_NUMBER),
             WRONG(target, OVER_ONE),
             WRONG(target, MINUS_ONE),
             WRONG(recall, NOT_A_NUMBER),
             WRONG(recall, OVER_ONE),
             WRONG(recall, MINUS_ONE),
             WRONG(standard_error, INFINITE),
             WRONG(standard_error, MINUS_ONE),
             WRONG(evaluations, INFINITE),
             WRONG(evaluations, NOT_A_NUMBER),
             WRONG(evaluations, MINUS_ONE),
             WRONG(k, 0),
             WRONG(k, SL_MAX_EF + 1),
             WRONG(k, UINT32_MAX),
             WRONG(k, K + 1),
             WRONG(least_k, 0),
             WRONG(least_k, K + 1),
             WRONG(ef, 0),
             WRONG(ef, K - 1),
             WRONG(ef, SL_MAX_EF + 1),
             WRONG(rerank, SL_MAX_EF + 1),
             WRONG(limit, 4),
             WRONG(stop, 0xbf800000),
             WRONG(stop, 0x7fc00000),
             WRONG(stop, 0x7f800000),
             WRONG(stop, 0x3d800000),
             WRONG(ef_alone, K),
             WRONG(probes, SL_MAX_PARTITIONS + 1),
             WRONG(probes, UINT32_MAX),
             WRONG(probes_one, SL_MAX_PARTITIONS + 1)};

START_TEST(hostile_records_are_refused) {
    size_t size;
    sl_index *opened;
    ck_ok(tune(idx, K, two));
    ck_ok(sl_index_save(idx, place.path, NULL));
    unsigned char *valid = file_read(place.path, &size);
    sl_file_header header;
    memcpy(&header, valid, sizeof header);
    const size_t last = header.section_count - 1;
    const size_t at = (size_t)header.sections[last].offset;
    ck_assert_uint_eq(header.sections[last].kind, SL_SECTION_TUNED);
    ck_assert_uint_eq(header.sections[last].flags, 0);
    ck_assert_uint_eq(header.sections[last].size, 2 * sizeof(sl_tuned_record));
    for (int where = SL_PLACE_DRAM; where <= SL_PLACE_MAP; where++) {
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            forge(valid, size, at + wrong[i].at, &wrong[i].value, wrong[i].width);
            ck_fails(open_in((sl_place)where, &opened), SL_ECORRUPT, place.path);
            ck_assert_ptr_null(opened);
        }
        /* Out of order, and twice the same. */
        double same = 0.9;
        forge(valid, size, at, &same, sizeof same);
        ck_fails(open_in((sl_place)where, &opened), SL_ECORRUPT, "order");
        /* Sizes that are no records, none, or too many. */
        const uint64_t sizes[] = {0, 1, 95, 97, 191};
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            forge(valid, size, offsetof(sl_file_header, sections) + last * sizeof(sl_file_section) + 16, &sizes[i], 8);
            ck_fails(open_in((sl_place)where, &opened), SL_ECORRUPT, place.path);
        }
        /* A byte that fell over, also where the file is mapped. */
        unsigned char other = (unsigned char)(valid[at + 20] ^ 1);
        file_write(place.path, valid, size);
        file_patch(place.path, at + 20, &other, 1);
        ck_fails(open_in((sl_place)where, &opened), SL_ECORRUPT, "section 9 (tuned settings) is damaged");
        /* A record that needs a newer library is not used; the others are. */
        uint32_t newer = 1;
        forge(valid, size, at + sizeof(sl_tuned_record) - sizeof newer, &newer, sizeof newer);
        ck_ok(open_in((sl_place)where, &opened));
        ck_assert_uint_eq(indexes_stats(opened).tuned, 1);
        ck_assert(tuned_for(opened, K, 0.1).target == 0.9);
        sl_index_free(opened);
    }
    free(valid);
}
END_TEST

/* A section with any content is refused or opened, and an opened index can be searched. */
START_TEST(hostile_sections) {
    size_t size, opened = 0;
    ck_ok(tune(idx, K, two));
    ck_ok(sl_index_save(idx, place.path, NULL));
    unsigned char *valid = file_read(place.path, &size);
    sl_file_header header;
    memcpy(&header, valid, sizeof header);
    const size_t at = (size_t)header.sections[header.section_count - 1].offset;
    for (size_t word = 0; word < 2 * sizeof(sl_tuned_record) / 4; word++) {
        static const uint32_t values[] = {0, 1, 12, 0x3f800000, 0x7fffffff, 0xffffffff};
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            forge(valid, size, at + 4 * word, &values[v], 4);
            for (int where = SL_PLACE_DRAM; where <= SL_PLACE_MAP; where++) {
                sl_index *index;
                sl_status status = open_in((sl_place)where, &index);
                if (status != SL_OK) {
                    ck_assert_int_eq(status, SL_ECORRUPT);
                    continue;
                }
                opened++;
                status = ask(index, K, 0.8);
                ck_assert(status == SL_OK || status == SL_ENOTFOUND);
                sl_index_free(index);
            }
        }
    }
    ck_assert_uint_gt(opened, 20);
    ck_assert_uint_lt(opened, 2 * sizeof(sl_tuned_record) / 4 * 12);
    free(valid);
}
END_TEST

int main(void) {
    TCase *held_out = tcase_create("held out"), *tests = tcase_create("tune");
    tcase_add_loop_test(held_out, holds_on_other_queries, 0, sizeof kinds / sizeof *kinds);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, finds_what_serves);
    tcase_add_test(tests, fewer_neighbours_are_served_as_measured);
    tcase_add_test(tests, searches_as_with_its_settings);
    tcase_add_test(tests, threads_find_the_same);
    tcase_add_test(tests, says_what_stands_in_the_way);
    tcase_add_test(tests, refuses);
    tcase_add_test(tests, stores_so_many);
    tcase_add_test(tests, can_be_cancelled);
    tcase_add_test(tests, memory_may_run_out);
    tcase_add_test(tests, a_file_keeps_them);
    tcase_add_test(tests, hostile_records_are_refused);
    tcase_add_test(tests, hostile_sections);
    TCase *const cases[] = {held_out, tests};
    return check_main("tune", cases, 2);
}
