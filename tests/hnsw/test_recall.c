/* Results of searches against exact search, and their scores, for every kind of index. */
#include "base/random.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"

#include <math.h>
#include <stdlib.h>

enum { N = 2500, QUERIES = 60, K = 10, EF = 100 };

/* A kind of index and what is asked of it: recall at EF, and how far a score may be from sl_score's, in units of the
 * largest a score of these two vectors can be. 0: equal. */
static const struct kind {
    const char *name;
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
    double recall, score_error;
} kinds[] = {
    {"f32, i8", SL_F32, SL_CODES_I8, SL_REFINE_NONE, 0.85, 0.02},
    {"f32, i8, f32", SL_F32, SL_CODES_I8, SL_REFINE_F32, 0.95, 1e-5},
    {"f32, i8, bf16", SL_F32, SL_CODES_I8, SL_REFINE_BF16, 0.95, 1e-4},
    {"f32, i8, i16", SL_F32, SL_CODES_I8, SL_REFINE_I16, 0.95, 1e-4},
    {"f32, i16", SL_F32, SL_CODES_I16, SL_REFINE_NONE, 0.95, 1e-4},
    {"f32, i16, f32", SL_F32, SL_CODES_I16, SL_REFINE_F32, 0.95, 1e-5},
    {"f32, i16, bf16", SL_F32, SL_CODES_I16, SL_REFINE_BF16, 0.95, 1e-4},
    {"f32, i16, i16", SL_F32, SL_CODES_I16, SL_REFINE_I16, 0.95, 1e-4},
    {"f32, i4", SL_F32, SL_CODES_I4, SL_REFINE_NONE, 0.95, 1e-3},
    {"f32, i4, f32", SL_F32, SL_CODES_I4, SL_REFINE_F32, 0.95, 1e-5},
    {"f32, i4, i16", SL_F32, SL_CODES_I4, SL_REFINE_I16, 0.95, 1e-4},
    {"bf16, i4", SL_BF16, SL_CODES_I4, SL_REFINE_NONE, 0.95, 1e-3},
    {"f32, f32", SL_F32, SL_CODES_F32, SL_REFINE_NONE, 0.95, 1e-5},
    {"f16, i8", SL_F16, SL_CODES_I8, SL_REFINE_NONE, 0.85, 0.02},
    {"f16, i8, f32", SL_F16, SL_CODES_I8, SL_REFINE_F32, 0.95, 1e-5},
    {"bf16, i8, bf16", SL_BF16, SL_CODES_I8, SL_REFINE_BF16, 0.95, 1e-5},
    {"bf16, f32", SL_BF16, SL_CODES_F32, SL_REFINE_NONE, 0.95, 1e-5},
    {"i8", SL_I8, SL_CODES_I8, SL_REFINE_NONE, 0.93, 0},
    {"u8", SL_U8, SL_CODES_I8, SL_REFINE_NONE, 0.93, 0},
    {"i16", SL_I16, SL_CODES_I16, SL_REFINE_NONE, 0.95, 0},
    {"i8, i4", SL_I8, SL_CODES_I4, SL_REFINE_NONE, 0.93, 0},
    {"u8, i4", SL_U8, SL_CODES_I4, SL_REFINE_NONE, 0.93, 0},
    {"i16, i4", SL_I16, SL_CODES_I4, SL_REFINE_NONE, 0.95, 0},
};
#define KINDS (sizeof kinds / sizeof *kinds)

static const sl_metric metrics[] = {SL_METRIC_IP, SL_METRIC_COSINE, SL_METRIC_L2};

/* Base and queries of one type. */
typedef struct data {
    sl_dtype dtype;
    size_t dim, n;
    unsigned char *base, *queries;
} data;

static data data_make(sl_dtype dtype, size_t dim, size_t n, double spread) {
    float *floats = clusters_make(n + QUERIES, dim, spread, 7);
    data d = {dtype, dim, n, clusters_as(dtype, floats, (n + QUERIES) * dim), NULL};
    d.queries = d.base + n * dim * sl_dtype_size(dtype);
    free(floats);
    return d;
}

static const void *row(const data *d, const unsigned char *rows, uint64_t i) {
    return rows + i * d->dim * sl_dtype_size(d->dtype);
}

static double score(const data *d, sl_metric metric, const void *a, const void *b) {
    double value;
    ck_ok(sl_score(metric, d->dtype, a, b, d->dim, &value));
    return value;
}

/* Bound of a score of two vectors. */
static double score_unit(const data *d, sl_metric metric, const void *a, const void *b) {
    if (metric == SL_METRIC_COSINE) return 1;
    double x = sqrt(score(d, SL_METRIC_IP, a, a)), y = sqrt(score(d, SL_METRIC_IP, b, b));
    return metric == SL_METRIC_IP ? x * y : (x + y) * (x + y);
}

static void check_scores(const data *d, const struct kind *kind, sl_metric metric, const uint64_t *ids,
                         const float *scores) {
    for (size_t i = 0; i < QUERIES * K; i++) {
        const void *query = row(d, d->queries, i / K), *vector = row(d, d->base, ids[i]);
        double wanted = score(d, metric, query, vector), got = (double)scores[i];
        if (kind->score_error == 0)
            ck_assert_msg(scores[i] == (float)wanted, "%s: %g, not %g", kind->name, got, wanted);
        double error = fabs(got - wanted) / score_unit(d, metric, query, vector);
        ck_assert_msg(error <= kind->score_error + 1e-7, "%s: a score of %g is %g", kind->name, wanted, got);
        ck_assert(metric != SL_METRIC_L2 || got >= 0);
        if (i % K == 0) continue;
        double better = (double)scores[i - 1];
        ck_assert_msg(metric == SL_METRIC_L2 ? better <= got : better >= got, "%s: not best first", kind->name);
    }
}

static double recall_at(const data *d, sl_metric metric, const sl_index *index, size_t ef, uint64_t *ids,
                        float *scores) {
    uint64_t truth[QUERIES * K];
    indexes_exact(metric, d->dim, (vector_rows){d->base, d->dtype, d->n}, (vector_rows){d->queries, d->dtype, QUERIES},
                  K, truth);
    indexes_search(index, (vector_rows){d->queries, d->dtype, QUERIES}, K, ef, ids, scores);
    return indexes_recall(ids, truth, QUERIES, K);
}

static sl_index *build(const data *d, const struct kind *kind, sl_metric metric) {
    sl_index_params params;
    indexes_params(&params, d->dim, metric);
    params.m = 12;
    params.dtype = kind->dtype;
    params.codes = kind->codes;
    params.refine = kind->refine;
    return indexes_make(&params, d->base, d->dtype, d->n, NULL, 2);
}

static void try_kind(const struct kind *kind, size_t dim) {
    data d = data_make(kind->dtype, dim, N, 0.3);
    for (size_t i = 0; i < 3; i++) {
        uint64_t ids[QUERIES * K];
        float scores[QUERIES * K];
        sl_index *index = build(&d, kind, metrics[i]);
        double recall = recall_at(&d, metrics[i], index, EF, ids, scores);
        ck_assert_msg(recall >= kind->recall, "%s, %s, dim %zu: recall is %.4f", kind->name, sl_metric_name(metrics[i]),
                      dim, recall);
        check_scores(&d, kind, metrics[i], ids, scores);
        sl_index_free(index);
    }
    free(d.base);
}

START_TEST(finds_the_nearest) {
    try_kind(&kinds[_i], 24);
}
END_TEST

START_TEST(finds_the_nearest_of_many_dimensions) {
    try_kind(&kinds[_i], 100);
}
END_TEST

/* Lengths that differ by a hundred and more. One scale for all vectors would leave nothing of the short ones. A graph
 * that linked everything to the longest could not be walked. */
START_TEST(lengths_may_differ_widely) {
    data d = data_make(SL_F32, 24, N, 1.2);
    for (size_t i = 0; i < 3; i++) {
        uint64_t ids[QUERIES * K];
        float scores[QUERIES * K];
        sl_index *index = build(&d, &kinds[1], metrics[i]);
        double recall = recall_at(&d, metrics[i], index, EF, ids, scores);
        ck_assert_msg(recall >= 0.93, "%s: recall is %.4f", sl_metric_name(metrics[i]), recall);
        check_scores(&d, &kinds[1], metrics[i], ids, scores);
        sl_index_free(index);
    }
    free(d.base);
}
END_TEST

START_TEST(threads_find_the_same) {
    data d = data_make(SL_F32, 24, N, 0.3);
    sl_index *index = build(&d, &kinds[2], SL_METRIC_COSINE);
    uint64_t alone[QUERIES * K], many[QUERIES * K], single[K];
    float alone_scores[QUERIES * K], many_scores[QUERIES * K], single_scores[K];
    sl_search_stats stats[2], sum = {0}, one;
    sl_search_params params;
    sl_search_params_init(&params);
    ck_ok(sl_index_search(index, d.queries, SL_F32, QUERIES, 0, K, &params, alone, alone_scores, &stats[0]));
    params.threads = 4;
    ck_ok(sl_index_search(index, d.queries, SL_F32, QUERIES, 0, K, &params, many, many_scores, &stats[1]));
    sl_searcher *searcher;
    ck_ok(sl_searcher_create(index, params.ef, &searcher));
    for (size_t q = 0; q < QUERIES; q++) {
        ck_ok(sl_searcher_search(searcher, row(&d, d.queries, q), SL_F32, K, NULL, single, single_scores, &one));
        ck_assert_mem_eq(single, alone + q * K, sizeof single);
        ck_assert_mem_eq(single_scores, alone_scores + q * K, sizeof single_scores);
        sum.results += one.results;
        sum.evaluations += one.evaluations;
        sum.expansions += one.expansions;
    }
    ck_assert_mem_eq(many, alone, sizeof many);
    ck_assert_mem_eq(many_scores, alone_scores, sizeof many_scores);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_uint_eq(stats[i].results, QUERIES * K);
        ck_assert_uint_eq(stats[i].evaluations, sum.evaluations);
        ck_assert_uint_eq(stats[i].expansions, sum.expansions);
    }
    ck_assert_uint_eq(sum.results, QUERIES * K);
    ck_assert_uint_gt(sum.expansions, QUERIES * K);
    ck_assert_uint_gt(sum.evaluations, sum.expansions);
    /* Else a scan would do. */
    ck_assert_uint_lt(sum.evaluations, QUERIES * N / 2);
    sl_searcher_free(searcher);
    sl_index_free(index);
    free(d.base);
}
END_TEST

/* A larger pool, and more of it scored anew, find more. */
START_TEST(effort_pays) {
    data d = data_make(SL_F32, 100, N, 0.3);
    sl_index *index = build(&d, &kinds[1], SL_METRIC_L2);
    uint64_t ids[QUERIES * K], truth[QUERIES * K];
    float scores[QUERIES * K];
    double low = recall_at(&d, SL_METRIC_L2, index, K, ids, scores);
    double high = recall_at(&d, SL_METRIC_L2, index, 400, ids, scores);
    ck_assert_msg(low < high && high >= 0.99, "recall is %.4f, then %.4f", low, high);

    indexes_exact(SL_METRIC_L2, d.dim, (vector_rows){d.base, SL_F32, N}, (vector_rows){d.queries, SL_F32, QUERIES}, K,
                  truth);
    sl_search_params params;
    sl_search_params_init(&params);
    params.ef = 400;
    double recall[2];
    for (size_t i = 0; i < 2; i++) {
        params.rerank = i ? params.ef : K;
        ck_ok(sl_index_search(index, d.queries, SL_F32, QUERIES, 0, K, &params, ids, NULL, NULL));
        recall[i] = indexes_recall(ids, truth, QUERIES, K);
    }
    ck_assert_msg(recall[0] < recall[1], "recall is %.4f, then %.4f", recall[0], recall[1]);
    sl_index_free(index);
    free(d.base);
}
END_TEST

static const struct shape {
    size_t m, ef_construction;
    double recall;
} shapes[] = {{2, 100, 0.5}, {2, 2, 0.1}, {16, 16, 0.9}, {64, 64, 0.97}, {SL_MAX_M, SL_MAX_M, 0.99}};

START_TEST(any_degree_works) {
    const struct shape *shape = &shapes[_i];
    size_t n = shape->m > 64 ? 1000 : N;
    data d = data_make(SL_F32, 24, n, 0.3);
    sl_index_params params;
    indexes_params(&params, d.dim, SL_METRIC_COSINE);
    params.m = shape->m;
    params.ef_construction = shape->ef_construction;
    params.refine = SL_REFINE_F32;
    sl_index *index = indexes_make(&params, d.base, SL_F32, n, NULL, 2);
    uint64_t ids[QUERIES * K];
    double recall = recall_at(&d, SL_METRIC_COSINE, index, EF, ids, NULL);
    ck_assert_msg(recall >= shape->recall, "m %zu: recall is %.4f", shape->m, recall);
    sl_check_report report = indexes_sound(index);
    ck_assert_uint_le(report.max_degree, 2 * shape->m);
    sl_index_free(index);
    free(d.base);
}
END_TEST

/* Rows far shorter than the query, nearer to one another than a float of the query's length can tell. */
START_TEST(exact_is_exact_beside_short_rows) {
    const float rows[] = {-1e-8f, 0, 0, 0}, query[] = {1, 3e-4f};
    sl_exact_params params;
    sl_exact_params_init(&params);
    params.dim = 2;
    params.k = 1;
    params.metric = SL_METRIC_L2;
    sl_exact *exact;
    ck_ok(sl_exact_create(&params, query, 1, 0, &exact));
    ck_ok(sl_exact_scan(exact, rows, 2, 0, 0));
    uint64_t id;
    ck_ok(sl_exact_results(exact, &id, NULL));
    ck_assert_uint_eq(id, 1);
    sl_exact_free(exact);
}
END_TEST

/* Rows that differ by less than a sum of squares in floats is rounded, and squares that are subnormal floats. */
START_TEST(exact_resolves_what_floats_round) {
    enum { ROWS = 2000, DIM = 64, ASKED = 20 };
    static const float scales[] = {1, 3e-23f};
    static float rows[ROWS * DIM], queries[ASKED * DIM];
    static uint64_t ids[ASKED * K];
    for (size_t i = 0; i < ROWS * DIM; i++)
        rows[i] = scales[_i] * (1 + 0x1p-43f * (float)(sl_random_at(3, i) >> 40));
    for (size_t i = 0; i < ASKED * DIM; i++)
        queries[i] = scales[_i] * 0x1p-43f * (float)(sl_random_at(5, i) >> 40);
    /* The same in all, so that none is too short. */
    for (size_t i = 0; i < ROWS; i++)
        rows[i * DIM] = 1;
    for (size_t q = 0; q < ASKED; q++)
        queries[q * DIM] = 1;
    indexes_exact(SL_METRIC_L2, DIM, (vector_rows){rows, SL_F32, ROWS}, (vector_rows){queries, SL_F32, ASKED}, K, ids);
    for (size_t q = 0; q < ASKED; q++) {
        double farthest, score;
        size_t closer = 0;
        ck_ok(sl_score(SL_METRIC_L2, SL_F32, queries + q * DIM, rows + ids[q * K + K - 1] * DIM, DIM, &farthest));
        for (size_t i = 0; i < ROWS; i++) {
            ck_ok(sl_score(SL_METRIC_L2, SL_F32, queries + q * DIM, rows + i * DIM, DIM, &score));
            closer += score < farthest;
        }
        ck_assert_uint_lt(closer, K);
    }
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("recall");
    tcase_add_loop_test(tests, finds_the_nearest, 0, KINDS);
    tcase_add_loop_test(tests, finds_the_nearest_of_many_dimensions, 0, KINDS);
    tcase_add_test(tests, exact_is_exact_beside_short_rows);
    tcase_add_loop_test(tests, exact_resolves_what_floats_round, 0, 2);
    tcase_add_test(tests, lengths_may_differ_widely);
    tcase_add_test(tests, threads_find_the_same);
    tcase_add_test(tests, effort_pays);
    tcase_add_loop_test(tests, any_degree_works, 0, sizeof shapes / sizeof *shapes);
    return check_main("recall", &tests, 1);
}
