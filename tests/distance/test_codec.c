/* Rows and queries of every combination of codes, input type and metric: geometry, round trips, scores. */
#include "base/cpu.h"
#include "base/random.h"
#include "distance/codec/encode.h"
#include "distance/codec/vector_check.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DIM   300
#define ROW_COUNT 40

static uint64_t counter;

static double uniform(void) {
    return 2 * sl_random_unit(11, counter++) - 1;
}

static const struct {
    sl_dtype dtype;
    sl_codes codes;
} kinds[] = {
    {SL_F32, SL_CODES_I8},   {SL_F32, SL_CODES_I16}, {SL_F32, SL_CODES_F32}, {SL_F16, SL_CODES_I8},
    {SL_BF16, SL_CODES_I16}, {SL_I8, SL_CODES_I8},   {SL_U8, SL_CODES_I8},   {SL_I16, SL_CODES_I16},
};
#define KINDS ((int)(sizeof kinds / sizeof *kinds))
static const size_t dims[] = {1, 2, 3, 7, 16, 31, 64, 65, 100, 128, 200, 257};
#define DIMS ((int)(sizeof dims / sizeof *dims))

/* Some vectors and their rows. */
typedef struct set {
    sl_codec codec;
    sl_dtype dtype;
    size_t dim;
    uint8_t vectors[ROW_COUNT][4 * MAX_DIM];
    uint8_t *rows;
    sl_quant_error error;
} set;

/* Never zero. */
static void random_vector(sl_dtype dtype, size_t dim, double norm, void *out) {
    for (size_t i = 0; i < dim; i++) {
        uint64_t bits = sl_random_at(11, counter++) | (i == 0);
        float value = (float)(norm * uniform());
        if (sl_dtype_is_float(dtype))
            sl_from_float(dtype, &value, (uint8_t *)out + i * sl_dtype_size(dtype), 1);
        else
            memcpy((uint8_t *)out + i * sl_dtype_size(dtype), &bits, sl_dtype_size(dtype));
    }
}

static set *set_new(int kind, sl_metric metric, size_t dim) {
    set *s = calloc(1, sizeof *s);
    s->dtype = kinds[kind].dtype;
    s->dim = dim;
    ck_assert_int_eq(sl_codec_init(&s->codec, dim, metric, s->dtype, kinds[kind].codes), SL_OK);
    s->rows = aligned_alloc(64, (sl_codec_rows_size(&s->codec, ROW_COUNT) + 63) / 64 * 64);
    memset(s->rows, 0xff, sl_codec_rows_size(&s->codec, ROW_COUNT));
    s->codec.rows.base = s->rows;
    float floats[MAX_DIM];
    for (size_t r = 0; r < ROW_COUNT; r++) {
        random_vector(s->dtype, dim, 1 + (double)r, s->vectors[r]);
        sl_encode_row(&s->codec, s->vectors[r], s->dtype, s->rows + r * s->codec.rows.pitch, floats, &s->error);
    }
    return s;
}

static void set_free(set *s) {
    free(s->rows);
    free(s);
}

/* Returns the kernels' score in the public terms of its metric. */
static double score_of(const set *s, const sl_query_code *query, float norm2, uint32_t row) {
    float score;
    sl_kernels_best()->score[s->codec.codes](&s->codec.rows, query, &row, 1, 0, &score);
    return s->codec.metric == SL_METRIC_L2 ? 2 * ((double)sl_codec_nearest(&s->codec, norm2) - (double)score)
                                           : (double)score;
}

static double double_dot(const float *a, const float *b, size_t dim) {
    double sum = 0;
    for (size_t i = 0; i < dim; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Returns the metric's score of two decoded vectors, and the size of its terms. */
static double true_score(sl_metric metric, const float *a, const float *b, size_t dim, double *size) {
    double ab = double_dot(a, b, dim), aa = double_dot(a, a, dim), bb = double_dot(b, b, dim);
    *size = metric == SL_METRIC_COSINE ? 1 : metric == SL_METRIC_IP ? sqrt(aa * bb) : aa + bb;
    if (metric == SL_METRIC_COSINE) return ab / sqrt(aa * bb);
    return metric == SL_METRIC_IP ? ab : aa + bb - 2 * ab;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Geometry
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(geometry_of_rows) {
    for (int kind = 0; kind < KINDS; kind++)
        for (int metric = 0; metric < 3; metric++)
            for (size_t dim = 1; dim <= 2000; dim++) {
                sl_codec c;
                ck_assert_int_eq(sl_codec_init(&c, dim, (sl_metric)metric, kinds[kind].dtype, kinds[kind].codes),
                                 SL_OK);
                size_t size = dim * (c.codes == SL_CODES_I8 ? 1 : c.codes == SL_CODES_I16 ? 2 : 4);
                int has_bias = metric == SL_METRIC_L2 || kinds[kind].dtype == SL_U8;
                size_t payload = (size + 3) / 4 * 4 + 4;
                ck_assert_uint_eq(c.rows.factor, payload - 4);
                ck_assert_uint_eq(c.rows.bias, has_bias ? payload : 0);
                payload += has_bias ? 4 : 0;
                ck_assert_uint_eq(c.norm, metric == SL_METRIC_COSINE ? payload : 0);
                payload += metric == SL_METRIC_COSINE ? 4 : 0;
                ck_assert(c.rows.width >= size && c.rows.width < size + 64 && c.rows.width % 64 == 0);
                ck_assert(c.rows.pitch >= payload && c.rows.pitch % 16 == 0);
                ck_assert(c.rows.pitch % 64 == 0 || c.rows.pitch - payload < 16);
                ck_assert(4 * (c.rows.pitch - payload) <= payload || c.rows.pitch - payload < 16 ||
                          c.codes == SL_CODES_F32);
                if (c.codes == SL_CODES_F32) ck_assert_uint_ge(c.rows.pitch, c.rows.width);
                ck_assert_uint_le(c.rows.width, c.rows.pitch + SL_ROW_STEP);
                ck_assert_uint_eq(sl_query_size(&c), c.rows.width);
                ck_assert_uint_eq(sl_codec_rows_size(&c, 10), 10 * c.rows.pitch + SL_ROW_STEP);
                ck_assert_uint_eq(sl_codec_rows_size(&c, SIZE_MAX / c.rows.pitch + 1), 0);
            }
    sl_codec headline;
    ck_assert_int_eq(sl_codec_init(&headline, 100, SL_METRIC_COSINE, SL_F32, SL_CODES_I8), SL_OK);
    ck_assert_uint_eq(headline.rows.pitch, 128);
}
END_TEST

START_TEST(init_refuses) {
    sl_codec c;
    ck_assert_int_eq(sl_codec_init(&c, 0, SL_METRIC_IP, SL_F32, SL_CODES_I8), SL_EINVAL);
    ck_assert_int_eq(sl_codec_init(&c, SL_MAX_DIM + 1, SL_METRIC_IP, SL_F32, SL_CODES_I8), SL_ELIMIT);
    ck_assert_int_eq(sl_codec_init(&c, SL_MAX_DIM, SL_METRIC_IP, SL_F32, SL_CODES_F32), SL_OK);
    ck_assert_int_eq(sl_codec_init(&c, 4, (sl_metric)3, SL_F32, SL_CODES_I8), SL_EINVAL);
    ck_assert_int_eq(sl_codec_init(&c, 4, SL_METRIC_IP, (sl_dtype)6, SL_CODES_I8), SL_ETYPE);
    ck_assert_int_eq(sl_codec_init(&c, SL_MAX_DIM, SL_METRIC_IP, SL_BF16, SL_CODES_I4), SL_OK);
    ck_assert_int_eq(sl_codec_init(&c, 4, SL_METRIC_IP, SL_I8, SL_CODES_I4), SL_EINVAL);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "ask for codes i8"));
    ck_assert_int_eq(sl_codec_init(&c, 4, SL_METRIC_IP, SL_I16, SL_CODES_I4), SL_EINVAL);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "ask for codes i16"));
    ck_assert_int_eq(sl_codec_init(&c, 4, SL_METRIC_IP, SL_F32, (sl_codes)4), SL_EINVAL);
    ck_assert_int_eq(sl_codec_init(&c, 4, SL_METRIC_IP, SL_U8, SL_CODES_I16), SL_EINVAL);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "ask for codes i8"));
    ck_assert_int_eq(sl_codec_init(&c, 4, SL_METRIC_IP, SL_I16, SL_CODES_I8), SL_EINVAL);
    ck_assert_int_eq(sl_codec_init(&c, 4, SL_METRIC_IP, SL_I8, SL_CODES_F32), SL_EINVAL);
}
END_TEST

START_TEST(types_accepted) {
    sl_codec floats, bytes;
    ck_assert_int_eq(sl_codec_init(&floats, 4, SL_METRIC_IP, SL_BF16, SL_CODES_I8), SL_OK);
    ck_assert_int_eq(sl_codec_init(&bytes, 4, SL_METRIC_IP, SL_U8, SL_CODES_I8), SL_OK);
    for (int dtype = SL_F32; dtype <= SL_I16; dtype++) {
        ck_assert_int_eq(sl_codec_accepts(&floats, (sl_dtype)dtype), dtype <= SL_BF16 ? SL_OK : SL_ETYPE);
        ck_assert_int_eq(sl_codec_accepts(&bytes, (sl_dtype)dtype), dtype == SL_U8 ? SL_OK : SL_ETYPE);
    }
    ck_assert_int_eq(sl_codec_accepts(&floats, (sl_dtype)6), SL_ETYPE);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Which vectors may become a row
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(vectors_refused) {
    float x[600];
    for (int metric = 0; metric < 3; metric++)
        for (size_t at = 0; at < 600; at += 37) {
            for (size_t i = 0; i < 600; i++)
                x[i] = 1;
            ck_assert_int_eq(sl_vector_check((sl_metric)metric, SL_F32, x, 600), SL_OK);
            char wanted[64];
            snprintf(wanted, sizeof wanted, "element %zu ", at);
            static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
            for (size_t b = 0; b < 4; b++) {
                x[at] = bad[b];
                ck_assert_int_eq(sl_vector_check((sl_metric)metric, SL_F32, x, 600), SL_EVALUE);
                ck_assert_ptr_nonnull(strstr(sl_last_error(), wanted));
            }
        }
    uint16_t half[3] = {0x3c00, 0x7c00, 0};
    ck_assert_int_eq(sl_vector_check(SL_METRIC_IP, SL_F16, half, 3), SL_EVALUE);
    ck_assert_int_eq(sl_vector_check(SL_METRIC_IP, SL_F16, half, 1), SL_OK);
}
END_TEST

START_TEST(lengths_refused) {
    float x[4] = {0};
    int8_t bytes[4] = {0};
    ck_assert_int_eq(sl_vector_check(SL_METRIC_IP, SL_F32, x, 4), SL_OK);
    ck_assert_int_eq(sl_vector_check(SL_METRIC_L2, SL_F32, x, 4), SL_OK);
    ck_assert_int_eq(sl_vector_check(SL_METRIC_COSINE, SL_F32, x, 4), SL_EVALUE);
    ck_assert_int_eq(sl_vector_check(SL_METRIC_COSINE, SL_I8, bytes, 4), SL_EVALUE);
    ck_assert_int_eq(sl_vector_check(SL_METRIC_L2, SL_I8, bytes, 4), SL_OK);
    bytes[3] = -128;
    ck_assert_int_eq(sl_vector_check(SL_METRIC_COSINE, SL_I8, bytes, 4), SL_OK);
    ck_assert_int_eq(sl_vector_check(SL_METRIC_COSINE, SL_I16, bytes, 2), SL_OK);
    for (int metric = 0; metric < 3; metric++) {
        x[2] = 1e-30f;
        ck_assert_int_eq(sl_vector_check((sl_metric)metric, SL_F32, x, 4), SL_EVALUE);
        ck_assert_ptr_nonnull(strstr(sl_last_error(), "too small"));
        x[2] = 2e-18f;
        ck_assert_int_eq(sl_vector_check((sl_metric)metric, SL_F32, x, 4), SL_OK);
    }
    for (int metric = 0; metric < 3; metric++) {
        x[2] = 8e18f;
        ck_assert_int_eq(sl_vector_check((sl_metric)metric, SL_F32, x, 4), SL_OK);
        x[2] = FLT_MAX;
        ck_assert_int_eq(sl_vector_check((sl_metric)metric, SL_F32, x, 4), SL_EVALUE);
        ck_assert_ptr_nonnull(strstr(sl_last_error(), "too large"));
    }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Rows and back
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(native_elements_come_back) {
    for (int kind = 5; kind < KINDS; kind++)
        for (int metric = 0; metric < 3; metric++)
            for (int d = 0; d < DIMS; d++) {
                set *s = set_new(kind, (sl_metric)metric, dims[d]);
                uint8_t native[2 * MAX_DIM];
                float decoded[MAX_DIM], given[MAX_DIM];
                for (size_t r = 0; r < ROW_COUNT; r++) {
                    sl_decode_native(&s->codec, s->rows + r * s->codec.rows.pitch, native);
                    ck_assert_mem_eq(native, s->vectors[r], dims[d] * sl_dtype_size(s->dtype));
                    sl_decode_row(&s->codec, s->rows + r * s->codec.rows.pitch, decoded);
                    sl_to_float(s->dtype, s->vectors[r], given, dims[d]);
                    ck_assert_mem_eq(decoded, given, dims[d] * sizeof *given);
                }
                set_free(s);
            }
}
END_TEST

/* Each element is off by at most half a unit, max|x| / 127 / 2, whatever the others' lengths. */
static void check_precision(sl_codes codes, sl_metric metric, double norm) {
    sl_codec c;
    ck_assert_int_eq(sl_codec_init(&c, 100, metric, SL_F32, codes), SL_OK);
    float x[100], scratch[100], decoded[100];
    random_vector(SL_F32, 100, norm, x);
    uint8_t *row = aligned_alloc(64, 1024);
    sl_quant_error error = {0};
    sl_encode_row(&c, x, SL_F32, row, scratch, &error);
    sl_decode_row(&c, row, decoded);
    double most = 0, off2 = 0, largest_off = 0;
    for (size_t i = 0; i < 100; i++) {
        double off = fabs((double)x[i] - (double)decoded[i]);
        most = fmax(most, fabs((double)x[i]));
        largest_off = fmax(largest_off, off);
        off2 += off * off;
    }
    double levels = codes == SL_CODES_I8 ? 127 : 32767;
    /* Under cosine the row keeps the vector's length, and all its elements change a little for that. */
    double slack = metric == SL_METRIC_COSINE ? 1.5 : 1.01;
    ck_assert_double_le(largest_off, slack * most / levels / 2);
    double relative = sqrt(off2 / double_dot(x, x, 100));
    ck_assert_double_eq_tol(error.sum, relative, 1e-3 * relative);
    ck_assert_double_eq_tol(error.max, error.sum, 1e-7);
    ck_assert_uint_eq(error.count, 1);
    free(row);
}

START_TEST(every_length_keeps_its_precision) {
    for (int metric = 0; metric < 3; metric++)
        for (double norm = 1e-6; norm < 2e6; norm *= 10) {
            check_precision(SL_CODES_I8, (sl_metric)metric, norm);
            check_precision(SL_CODES_I16, (sl_metric)metric, norm);
        }
}
END_TEST

START_TEST(f32_rows_are_the_vectors) {
    for (int metric = 0; metric < 3; metric++) {
        set *s = set_new(2, (sl_metric)metric, 100);
        float decoded[MAX_DIM];
        for (size_t r = 0; r < ROW_COUNT; r++) {
            sl_decode_row(&s->codec, s->rows + r * s->codec.rows.pitch, decoded);
            ck_assert_mem_eq(decoded, s->vectors[r], 400);
        }
        ck_assert_double_eq(s->error.max, 0);
        ck_assert_uint_eq(s->error.count, ROW_COUNT);
        set_free(s);
    }
}
END_TEST

/* A residual is at most about half a unit, and BF16 keeps 8 bits of it. */
START_TEST(residuals_add_eight_bits) {
    for (int kind = 0; kind < 2; kind++)
        for (int metric = 0; metric < 3; metric++)
            for (int d = 0; d < DIMS; d++) {
                set *s = set_new(kind, (sl_metric)metric, dims[d]);
                float x[MAX_DIM], decoded[MAX_DIM];
                uint16_t residual[MAX_DIM];
                for (size_t r = 0; r < ROW_COUNT; r++) {
                    const uint8_t *row = s->rows + r * s->codec.rows.pitch;
                    double most = 0, levels = kinds[kind].codes == SL_CODES_I8 ? 127 : 32767;
                    sl_to_float(s->dtype, s->vectors[r], x, dims[d]);
                    sl_encode_residual(&s->codec, row, x, residual);
                    sl_decode_residual(&s->codec, row, residual, decoded);
                    for (size_t i = 0; i < dims[d]; i++)
                        most = fmax(most, fabs((double)x[i]));
                    for (size_t i = 0; i < dims[d]; i++)
                        ck_assert_double_le(fabs((double)x[i] - (double)decoded[i]),
                                            most * (0x1p-9 / levels + 0x1p-23));
                }
                set_free(s);
            }
}
END_TEST

START_TEST(errors_merge) {
    sl_quant_error a = {1, 0.5, 2}, b = {2, 0.75, 3};
    sl_quant_error_merge(&a, &b);
    ck_assert_double_eq(a.sum, 3);
    ck_assert_double_eq(a.max, 0.75);
    ck_assert_uint_eq(a.count, 5);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Scores over rows
 * ------------------------------------------------------------------------------------------------------------- */

/* The kernels see decoded rows and a decoded query, so their score is the metric of those two. */
static void check_query(const set *s, const float *decoded_query, const sl_query_code *query, float norm2) {
    float decoded[MAX_DIM];
    for (uint32_t r = 0; r < ROW_COUNT; r++) {
        double size;
        sl_decode_row(&s->codec, s->rows + r * s->codec.rows.pitch, decoded);
        double wanted = true_score(s->codec.metric, decoded, decoded_query, s->dim, &size);
        /* U8 is scored as x - 128, which may be longer than x. */
        if (s->dtype == SL_U8) size = s->codec.metric == SL_METRIC_COSINE ? 4 : 40000.0 * (double)s->dim;
        double bound = ((double)s->dim + 8) * 0x1p-22 * size;
        if (s->codec.metric == SL_METRIC_COSINE && s->dtype == SL_U8) bound *= 128;
        ck_assert_double_eq_tol(score_of(s, query, norm2, r), wanted, bound);
    }
}

static void check_scores_of(int kind, sl_metric metric, size_t dim) {
    set *s = set_new(kind, metric, dim);
    void *buffer = aligned_alloc(64, sl_query_size(&s->codec));
    float floats[MAX_DIM], decoded[MAX_DIM], norm2;
    sl_query_code query;
    for (size_t q = 0; q < 5; q++) {
        const uint8_t *row = s->rows + q * s->codec.rows.pitch;
        sl_decode_row(&s->codec, row, decoded);

        /* A vector encoded as a query equals its own row made a query. */
        sl_encode_query(&s->codec, s->vectors[q], s->dtype, buffer, floats, &query, &norm2);
        check_query(s, decoded, &query, norm2);
        float given[MAX_DIM];
        sl_to_float(s->dtype, s->vectors[q], given, dim);
        ck_assert_mem_eq(given, floats, dim * sizeof *given);
        double first = score_of(s, &query, norm2, (uint32_t)q);

        sl_row_as_query(&s->codec, row, buffer, &query);
        norm2 = sl_row_norm2(&s->codec, row);
        check_query(s, decoded, &query, norm2);
        double size, self = score_of(s, &query, norm2, (uint32_t)q);
        true_score(metric, decoded, decoded, dim, &size);
        if (s->dtype == SL_U8) size = 40000.0 * (double)dim;
        ck_assert_double_eq_tol(self, first, 1e-5 * size);
        /* A vector's score with itself is known. */
        double known = metric == SL_METRIC_L2 ? 0 : (double)norm2;
        ck_assert_double_eq_tol(self, known, 1e-5 * size);
    }
    free(buffer);
    set_free(s);
}

START_TEST(scores_are_those_of_the_decoded_vectors) {
    for (int metric = 0; metric < 3; metric++)
        for (int d = 0; d < DIMS; d++)
            check_scores_of(_i, (sl_metric)metric, dims[d]);
}
END_TEST

/* Sums below 2^24 are exact in a float, so 8-bit scores of short vectors are exact too. */
START_TEST(native_scores_are_exact_integers) {
    static const sl_metric metrics[] = {SL_METRIC_IP, SL_METRIC_L2};
    for (int kind = 5; kind < 7; kind++)
        for (int m = 0; m < 2; m++) {
            set *s = set_new(kind, metrics[m], 100);
            void *buffer = aligned_alloc(64, sl_query_size(&s->codec));
            float floats[MAX_DIM], norm2;
            sl_query_code query;
            sl_encode_query(&s->codec, s->vectors[3], s->dtype, buffer, floats, &query, &norm2);
            for (uint32_t r = 0; r < ROW_COUNT; r++) {
                double exact;
                ck_assert_int_eq(sl_score(metrics[m], s->dtype, s->vectors[r], s->vectors[3], 100, &exact), SL_OK);
                ck_assert_double_eq(score_of(s, &query, norm2, r), exact);
            }
            free(buffer);
            set_free(s);
        }
}
END_TEST

/* Zero, subnormal and huge vectors give finite rows and scores. */
START_TEST(extreme_lengths_stay_finite) {
    static const float values[] = {0, FLT_TRUE_MIN, 1e-40f, 1e-20f, 1e18f, -1e18f};
    static const sl_codes codes[] = {SL_CODES_I8, SL_CODES_I16, SL_CODES_F32};
    for (int metric = 0; metric < 3; metric++)
        for (int c = 0; c < 3; c++)
            for (int v = 0; v < 6; v++) {
                float x[64] = {values[v], values[v] / 3, -values[v]}, scratch[64], decoded[64], norm2;
                sl_codec codec;
                sl_query_code query;
                ck_assert_int_eq(sl_codec_init(&codec, 64, (sl_metric)metric, SL_F32, codes[c]), SL_OK);
                if (sl_vector_check((sl_metric)metric, SL_F32, x, 64) != SL_OK) continue;
                uint8_t *row = aligned_alloc(64, 1024), *buffer = aligned_alloc(64, 1024);
                sl_encode_row(&codec, x, SL_F32, row, scratch, NULL);
                sl_decode_row(&codec, row, decoded);
                for (int i = 0; i < 3; i++)
                    ck_assert_float_le(fabsf(decoded[i] - x[i]), fabsf(values[v]) / 200 + FLT_TRUE_MIN);
                sl_encode_query(&codec, x, SL_F32, buffer, scratch, &query, &norm2);
                codec.rows.base = row;
                float score;
                const uint32_t id = 0;
                sl_kernels_best()->score[codes[c]](&codec.rows, &query, &id, 1, 0, &score);
                ck_assert(isfinite(score) && isfinite(norm2));
                if (metric == SL_METRIC_COSINE) ck_assert_float_eq_tol(score, 1, 1e-6f);
                free(row);
                free(buffer);
            }
}
END_TEST

static int run_suite(void) {
    TCase *rows = tcase_create("rows");
    tcase_add_test(rows, geometry_of_rows);
    tcase_add_test(rows, init_refuses);
    tcase_add_test(rows, types_accepted);
    tcase_add_test(rows, vectors_refused);
    tcase_add_test(rows, lengths_refused);
    tcase_add_test(rows, native_elements_come_back);
    tcase_add_test(rows, every_length_keeps_its_precision);
    tcase_add_test(rows, f32_rows_are_the_vectors);
    tcase_add_test(rows, residuals_add_eight_bits);
    tcase_add_test(rows, errors_merge);
    TCase *scores = tcase_create("scores");
    tcase_add_loop_test(scores, scores_are_those_of_the_decoded_vectors, 0, KINDS);
    tcase_add_test(scores, native_scores_are_exact_integers);
    tcase_add_test(scores, extreme_lengths_stay_finite);
    TCase *const all[] = {rows, scores};
    return check_main("codec", all, 2);
}

int main(void) {
    if (sl_cpu_cap() != SL_ISA_COUNT && !sl_kernels_of(sl_cpu_cap())) {
        printf("skipped: this machine lacks %s\n", sl_isa_name(sl_cpu_cap()));
        return 77;
    }
    return run_suite();
}
