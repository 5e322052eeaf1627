/* Coarse rows: their projection, their scores, and the true neighbours they put in front. */
#include "base/cpu.h"
#include "distance/codec/coarse.h"
#include "distance/codec/encode.h"
#include "tests/support/check_main.h"
#include "tests/support/clusters.h"
#include "tests/support/indexes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 3000 };

/* Vectors to learn from, and a projection of them. */
typedef struct learned {
    sl_coarse coarse;
    const float *vectors;
    uint8_t *projection;
    void *buffer;
    float *x;
} learned;

static void vector_of(const void *ctx, size_t i, float *out) {
    const learned *l = ctx;
    memcpy(out, l->vectors + i * l->coarse.matrix.dim, l->coarse.matrix.dim * sizeof *out);
}

static learned learned_make(size_t dim, sl_metric metric, const float *vectors, size_t n, size_t threads) {
    learned l = {.vectors = vectors};
    sl_allocator allocator = sl_allocator_of(NULL);
    ck_ok(sl_coarse_init(&l.coarse, dim, metric));
    l.projection = aligned_alloc(64, sl_round_up(sl_coarse_projection_size(&l.coarse) + SL_ROW_STEP, 64));
    l.buffer = aligned_alloc(64, sl_round_up(sl_coarse_query_size(&l.coarse), 64));
    l.x = malloc(dim * sizeof *l.x);
    ck_assert(l.projection && l.buffer && l.x);
    const sl_coarse_vectors all = {.get = vector_of, .ctx = &l, .n = n};
    ck_ok(sl_coarse_learn(&l.coarse, &allocator, &all, 5, threads, l.projection));
    sl_coarse_set_projection(&l.coarse, l.projection);
    ck_assert(sl_coarse_is_finite(&l.coarse));
    ck_assert_uint_eq(sl_coarse_learned(&l.coarse), n);
    return l;
}

static void learned_free(learned *l) {
    free(l->projection);
    free(l->buffer);
    free(l->x);
}

static float *matrix_of(const learned *l) {
    size_t dim = l->coarse.matrix.dim;
    float *rows = malloc(l->coarse.codec.dim * dim * sizeof *rows);
    ck_assert_ptr_nonnull(rows);
    for (size_t i = 0; i < l->coarse.codec.dim; i++)
        sl_decode_row(&l->coarse.matrix, l->projection + i * l->coarse.matrix.rows.pitch, rows + i * dim);
    return rows;
}

static double dot(const float *a, const float *b, size_t dim) {
    double sum = 0;
    for (size_t i = 0; i < dim; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Equal but for what 8 bits lose. */
static void check_orthonormal(const learned *l) {
    size_t dim = l->coarse.matrix.dim;
    float *rows = matrix_of(l);
    for (size_t i = 0; i < l->coarse.codec.dim; i++)
        for (size_t j = 0; j <= i; j++) {
            double product = dot(rows + i * dim, rows + j * dim, dim);
            ck_assert_double_eq_tol(product, i == j ? 1 : 0, 0.02);
        }
    free(rows);
}

START_TEST(geometry_of_rows) {
    static const struct {
        size_t dim, own, pitch;
    } wanted[] = {{1, 1, 64},      {2, 2, 64},      {111, 111, 64},  {112, 112, 64},  {113, 112, 64},  {160, 112, 64},
                  {161, 161, 128}, {240, 240, 128}, {241, 240, 128}, {768, 240, 128}, {8192, 240, 128}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        sl_coarse coarse;
        ck_ok(sl_coarse_init(&coarse, wanted[i].dim, SL_METRIC_COSINE));
        ck_assert_uint_eq(coarse.codec.dim, wanted[i].own);
        ck_assert_uint_eq(coarse.codec.rows.pitch, wanted[i].pitch);
        ck_assert_uint_eq(coarse.codec.rows.width, wanted[i].pitch);
        ck_assert_uint_le((wanted[i].own + 1) / 2, coarse.codec.rows.factor);
        ck_assert_uint_le(coarse.codec.rows.bias + 4, wanted[i].pitch);
    }
    ck_assert(!sl_coarse_wanted(112, SL_METRIC_L2, SL_F32) && sl_coarse_wanted(113, SL_METRIC_L2, SL_F32));
    ck_assert(!sl_coarse_wanted(120, SL_METRIC_COSINE, SL_BF16) && sl_coarse_wanted(121, SL_METRIC_COSINE, SL_BF16));
    ck_assert(sl_coarse_wanted(1, SL_METRIC_L2, SL_U8) && sl_coarse_wanted(100, SL_METRIC_IP, SL_I16));
    ck_assert(sl_coarse_wanted(8192, SL_METRIC_L2, SL_F32) && !sl_coarse_wanted(8193, SL_METRIC_L2, SL_F32));
    ck_assert(!sl_coarse_wanted(8193, SL_METRIC_L2, SL_U8));
}
END_TEST

/* Learns from any vectors: one, copies, zero, elements that never change, the longest and the shortest. */
START_TEST(every_projection_is_orthonormal) {
    static const size_t dims[] = {1, 2, 9, 112, 130, 250}, counts[] = {1, 2, 60, 700};
    static const double scales[] = {1, 0, 1e16, 1e-17};
    size_t dim = dims[_i];
    for (size_t c = 0; c < 4; c++)
        for (size_t s = 0; s < 4; s++) {
            float *x = clusters_make(counts[c], dim, 0.3, 3);
            for (size_t i = 0; i < counts[c] * dim; i++)
                x[i] = i % dim == 1 ? 3 : (float)((double)x[i] * scales[s]);
            if (c == 2)
                for (size_t i = dim; i < counts[c] * dim; i++)
                    x[i] = x[i - dim];
            learned l = learned_make(dim, (sl_metric)((c + s) % 3), x, counts[c], 1);
            check_orthonormal(&l);
            learned_free(&l);
            free(x);
        }
}
END_TEST

/* Vectors too long for products of elements: fewer vectors than the projection has rows, and more. */
START_TEST(long_vectors) {
    enum { LONG = 2100 };
    static const size_t counts[] = {40, 500};
    float *x = clusters_make(500, LONG, 0.3, 3);
    learned l = learned_make(LONG, SL_METRIC_L2, x, counts[_i], 2);
    check_orthonormal(&l);
    float *rows = matrix_of(&l), *own = malloc(LONG * sizeof *own);
    /* The projection holds vectors of few directions whole. */
    double kept = 0, all = 0;
    for (size_t i = 0; i < counts[_i]; i++) {
        for (size_t k = 0; k < LONG; k++)
            own[k] = x[i * LONG + k] - l.coarse.mean[k];
        all += dot(own, own, LONG);
        for (size_t j = 0; j < l.coarse.codec.dim; j++)
            kept += pow(dot(own, rows + j * LONG, LONG), 2);
    }
    ck_assert_double_ge(kept, 0.97 * all);
    free(own);
    free(rows);
    learned_free(&l);
    free(x);
}
END_TEST

START_TEST(threads_change_nothing) {
    enum { DIM = 150 };
    float *x = clusters_make(2000, DIM, 0.3, 9);
    learned one = learned_make(DIM, SL_METRIC_COSINE, x, 2000, 1),
            four = learned_make(DIM, SL_METRIC_COSINE, x, 2000, 4);
    ck_assert_mem_eq(one.projection, four.projection, sl_coarse_projection_size(&one.coarse));
    learned_free(&one);
    learned_free(&four);
    free(x);
}
END_TEST

/* Rows of n vectors, and a query's scores of them; true scores too. */
typedef struct ground {
    learned l;
    uint8_t *rows;
    size_t n;
} ground;

static ground ground_make(size_t dim, sl_metric metric, const float *x, size_t n) {
    ground g = {.l = learned_make(dim, metric, x, n, 1), .n = n};
    size_t pitch = g.l.coarse.codec.rows.pitch;
    g.rows = aligned_alloc(64, n * pitch + 64);
    ck_assert_ptr_nonnull(g.rows);
    for (size_t i = 0; i < n; i++) {
        memcpy(g.l.x, x + i * dim, dim * sizeof *x);
        sl_coarse_encode(&g.l.coarse, sl_kernels_best(), g.l.x, g.l.buffer, g.rows + i * pitch);
    }
    g.l.coarse.codec.rows.base = g.rows;
    return g;
}

static float ground_scores(ground *g, const float *query, double *norm2, float *scores) {
    static uint32_t ids[MOST];
    sl_query_code code;
    float origin;
    for (uint32_t i = 0; i < g->n; i++)
        ids[i] = i;
    memcpy(g->l.x, query, g->l.coarse.matrix.dim * sizeof *query);
    sl_coarse_encode_query(&g->l.coarse, sl_kernels_best(), g->l.x, g->l.buffer, &code, norm2, &origin);
    sl_kernels_best()->score[SL_CODES_I4](&g->l.coarse.codec.rows, &code, ids, g->n, 4, scores);
    return origin;
}

static void ground_free(ground *g) {
    learned_free(&g->l);
    free(g->rows);
}

/* Counts true neighbours among the best by coarse scores, 3 times as many, and compares coarse scores with true
 * ones. */
static void check_scores(size_t dim, sl_metric metric) {
    enum { N = 1500, QUERIES = 20, K = 10 };
    float *x = clusters_make(N + QUERIES, dim, 0.3, 21), scores[N];
    ground g = ground_make(dim, metric, x, N);
    size_t hits = 0;
    double off2 = 0, spread2 = 0;
    uint64_t truth[QUERIES * K];
    indexes_exact(metric, dim, (vector_rows){x, SL_F32, N}, (vector_rows){x + N * dim, SL_F32, QUERIES}, K, truth);
    for (size_t q = 0; q < QUERIES; q++) {
        const float *query = x + (N + q) * dim;
        double norm2;
        float origin = ground_scores(&g, query, &norm2, scores);
        ck_assert_double_eq_tol(norm2, dot(query, query, dim), 1e-5 * norm2);
        double mean = 0;
        double wanted[N];
        for (size_t i = 0; i < N; i++) {
            /* Scores in the terms of a walk, moved to the origin. */
            ck_ok(sl_score(metric, SL_F32, query, x + i * dim, dim, &wanted[i]));
            if (metric == SL_METRIC_L2) wanted[i] *= -0.5;
            if (metric == SL_METRIC_COSINE) wanted[i] -= 1;
            mean += wanted[i] / N;
        }
        for (size_t i = 0; i < N; i++) {
            off2 += pow((double)scores[i] - (double)origin - wanted[i], 2);
            spread2 += pow(wanted[i] - mean, 2);
        }
        for (size_t t = 0; t < K; t++) {
            size_t better = 0;
            for (size_t i = 0; i < N; i++)
                better += scores[i] > scores[truth[q * K + t]];
            hits += better < 3 * K;
        }
    }
    ck_assert_msg(hits >= QUERIES * K * 97 / 100, "dim %zu, metric %d: %zu of %d", dim, (int)metric, hits, QUERIES * K);
    ck_assert_msg(off2 < 0.05 * spread2, "dim %zu, metric %d: off by %g of %g", dim, (int)metric, off2, spread2);
    ground_free(&g);
    free(x);
}

START_TEST(scores_are_near_the_true_ones) {
    static const size_t dims[] = {20, 128, 200, 384};
    for (int metric = 0; metric < 3; metric++)
        check_scores(dims[_i], (sl_metric)metric);
}
END_TEST

/* Rows and queries are finite at any lengths, and for a damaged file that brings NaN. */
START_TEST(extremes_stay_finite) {
    static const float values[] = {0, 1e-17f, 1e-3f, 1e18f, -1e18f, INFINITY, NAN};
    enum { DIM = 130, N = 50 };
    for (int metric = 0; metric < 3; metric++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            float *x = clusters_make(N, DIM, 0.3, 2), scores[N];
            double norm2;
            for (size_t i = 0; i < DIM; i++)
                x[7 * DIM + i] = i % 3 ? values[v] : 0;
            ground g = ground_make(DIM, (sl_metric)metric, x, N);
            for (size_t i = 0; i < N; i++) {
                float terms[2];
                const uint8_t *row = g.rows + i * g.l.coarse.codec.rows.pitch;
                memcpy(terms, row + g.l.coarse.codec.rows.factor, 4);
                memcpy(terms + 1, row + g.l.coarse.codec.rows.bias, 4);
                ck_assert(isfinite(terms[0]) && isfinite(terms[1]));
            }
            if (isfinite(values[v])) ck_assert(isfinite(ground_scores(&g, x + 7 * DIM, &norm2, scores)));
            for (size_t i = 0; i < N && isfinite(values[v]); i++)
                ck_assert(isfinite(scores[i]));
            ground_free(&g);
            free(x);
        }
}
END_TEST

static int run_suite(void) {
    TCase *projections = tcase_create("projections");
    tcase_add_test(projections, geometry_of_rows);
    tcase_add_loop_test(projections, every_projection_is_orthonormal, 0, 6);
    tcase_add_loop_test(projections, long_vectors, 0, 2);
    tcase_add_test(projections, threads_change_nothing);
    TCase *scores = tcase_create("scores");
    tcase_add_loop_test(scores, scores_are_near_the_true_ones, 0, 4);
    tcase_add_test(scores, extremes_stay_finite);
    TCase *const all[] = {projections, scores};
    return check_main("coarse", all, 2);
}

int main(void) {
    if (sl_cpu_cap() != SL_ISA_COUNT && !sl_kernels_of(sl_cpu_cap())) {
        printf("skipped: this machine lacks %s\n", sl_isa_name(sl_cpu_cap()));
        return 77;
    }
    return run_suite();
}
