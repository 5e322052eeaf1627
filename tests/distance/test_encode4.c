/* Codes of 4 bits and the 8 bits beside them: geometry, round trips, and the kernels' scores of both rows. */
#include "base/cpu.h"
#include "base/random.h"
#include "distance/codec/encode.h"
#include "distance/codec/encode4.h"
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

/* Draws roughly normal elements. */
static float bell(void) {
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += sl_random_unit(23, counter++);
    return (float)sum;
}

static const size_t dims[] = {1, 2, 3, 7, 16, 31, 64, 65, 100, 127, 128, 129, 200, 257};
#define DIMS ((int)(sizeof dims / sizeof *dims))

/* Vectors and their two rows. */
typedef struct set {
    sl_codec codec;
    float vectors[ROW_COUNT][MAX_DIM];
    uint8_t *rows, *rest;
    sl_quant_error error;
} set;

static uint8_t *array_of(size_t size, int fill) {
    uint8_t *block = aligned_alloc(64, (size + SL_ROW_STEP + 63) / 64 * 64);
    ck_assert_ptr_nonnull(block);
    memset(block, fill, (size + SL_ROW_STEP + 63) / 64 * 64);
    return block;
}

static void encode(set *s, size_t r) {
    float scratch[MAX_DIM];
    memcpy(scratch, s->vectors[r], sizeof scratch);
    sl_encode_row4(&s->codec, scratch, s->rows + r * s->codec.rows.pitch, s->rest + r * s->codec.rest.pitch, &s->error);
}

static set *set_new(sl_metric metric, size_t dim, int fill) {
    set *s = calloc(1, sizeof *s);
    ck_assert_ptr_nonnull(s);
    ck_assert_int_eq(sl_codec_init(&s->codec, dim, metric, SL_F32, SL_CODES_I4), SL_OK);
    s->codec.rows.base = s->rows = array_of(ROW_COUNT * s->codec.rows.pitch, fill);
    s->codec.rest.base = s->rest = array_of(ROW_COUNT * s->codec.rest.pitch, fill);
    for (size_t r = 0; r < ROW_COUNT; r++) {
        for (size_t i = 0; i < dim; i++)
            s->vectors[r][i] = (1 + (float)r) * bell();
        encode(s, r);
    }
    return s;
}

static void set_free(set *s) {
    free(s->rows);
    free(s->rest);
    free(s);
}

static const uint8_t *row_of(const set *s, size_t r) {
    return s->rows + r * s->codec.rows.pitch;
}

static const uint8_t *rest_of(const set *s, size_t r) {
    return s->rest + r * s->codec.rest.pitch;
}

static float float_at(const uint8_t *row, size_t offset) {
    float value;
    memcpy(&value, row + offset, sizeof value);
    return value;
}

static double double_dot(const float *a, const float *b, size_t dim) {
    double sum = 0;
    for (size_t i = 0; i < dim; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static void decode(const set *s, size_t r, float *out) {
    sl_decode_row4(&s->codec, row_of(s, r), rest_of(s, r), out);
}

/* Decodes by the definition of the two rows: the part of 4 bits, and both together, before any separate length. */
static void decode_plainly(const set *s, size_t r, double *four, double *both) {
    size_t dim = s->codec.dim, half = (dim + 1) / 2;
    const uint8_t *row = row_of(s, r), *rest = rest_of(s, r);
    for (size_t i = 0; i < dim; i++) {
        int k = i < half ? row[i] % 16 : row[i - half] / 16;
        four[i] = (2 * k - 15) * (double)float_at(row, s->codec.rows.factor);
        both[i] = four[i] + (rest[i] - 128) * (double)float_at(rest, s->codec.rest.factor);
    }
}

/* ---------------------------------------------------------------------------------------------------------------
 * Rows and back
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(geometry_of_both_rows) {
    for (int metric = 0; metric < 3; metric++)
        for (size_t dim = 1; dim <= 2000; dim++) {
            sl_codec c;
            ck_assert_int_eq(sl_codec_init(&c, dim, (sl_metric)metric, SL_F16, SL_CODES_I4), SL_OK);
            size_t size = (dim + 1) / 2, whole = (dim + 3) / 4 * 4;
            int cosine = metric == SL_METRIC_COSINE;
            ck_assert_uint_eq(c.rows.factor, (size + 3) / 4 * 4);
            ck_assert_uint_eq(c.rows.bias, cosine ? 0 : c.rows.factor + 4);
            ck_assert(c.rows.width >= size && c.rows.width < size + 64 && c.rows.width % 64 == 0);
            ck_assert(c.rows.pitch >= c.rows.factor + (cosine ? 4 : 8) && c.rows.pitch % 16 == 0);
            ck_assert_uint_le(c.rows.width, c.rows.pitch + SL_ROW_STEP);
            ck_assert_uint_eq(c.rest.factor, whole);
            ck_assert_uint_eq(c.rest.bias, 0);
            ck_assert_uint_eq(c.rest.pitch, whole + (cosine ? 8 : 4));
            ck_assert_uint_eq(c.norm, cosine ? whole + 4 : 0);
            ck_assert(c.rest.width >= dim && c.rest.width < dim + 64 && c.rest.width % 64 == 0);
            ck_assert_uint_eq(sl_query_size(&c), 2 * (2 * c.rows.width + c.rest.width));
        }
    sl_codec headline;
    ck_assert_int_eq(sl_codec_init(&headline, 100, SL_METRIC_COSINE, SL_F32, SL_CODES_I4), SL_OK);
    ck_assert_uint_eq(headline.rows.pitch, 64);
    ck_assert_uint_eq(headline.rest.pitch, 108);
}
END_TEST

/* Each element is off by at most half a unit of the second row: at most a thousandth of the largest magnitude. */
static void check_round_trip(const set *s, size_t r) {
    size_t dim = s->codec.dim;
    float decoded[MAX_DIM], unit = float_at(rest_of(s, r), s->codec.rest.factor);
    double four[MAX_DIM], both[MAX_DIM], most = 0;
    const float *x = s->vectors[r];
    double length = s->codec.norm ? sqrt(double_dot(x, x, dim)) : 1;
    decode(s, r, decoded);
    decode_plainly(s, r, four, both);
    for (size_t i = 0; i < dim; i++)
        most = fmax(most, fabs((double)x[i]));
    ck_assert_double_le((double)unit * length, most * 0.5 / 127);
    for (size_t i = 0; i < dim; i++) {
        double bound = 0.5001 * (double)unit * length + most * 0x1p-21 + FLT_MIN;
        ck_assert_double_eq_tol((double)decoded[i], both[i] * length, most * 0x1p-21 + FLT_MIN);
        ck_assert_double_eq_tol((double)decoded[i], (double)x[i], bound);
    }
}

START_TEST(both_rows_make_the_vector) {
    for (int metric = 0; metric < 3; metric++)
        for (int d = 0; d < DIMS; d++) {
            set *s = set_new((sl_metric)metric, dims[d], 0xff);
            for (size_t r = 0; r < ROW_COUNT; r++)
                check_round_trip(s, r);
            ck_assert_uint_eq(s->error.count, ROW_COUNT);
            set_free(s);
        }
}
END_TEST

/* Some 12 bits of an element: more than fewer bits would give, and not more than these can. */
START_TEST(precision_is_that_of_twelve_bits) {
    static const size_t some[] = {32, 100, 257};
    for (int metric = 0; metric < 3; metric++)
        for (int d = 0; d < 3; d++) {
            set *s = set_new((sl_metric)metric, some[d], 0);
            double mean = s->error.sum / (double)s->error.count, worst = 0, sum = 0;
            for (size_t r = 0; r < ROW_COUNT; r++) {
                float decoded[MAX_DIM];
                double off2 = 0;
                decode(s, r, decoded);
                for (size_t i = 0; i < some[d]; i++)
                    off2 += pow((double)s->vectors[r][i] - (double)decoded[i], 2);
                double off = sqrt(off2 / double_dot(s->vectors[r], s->vectors[r], some[d]));
                worst = fmax(worst, off);
                sum += off;
            }
            ck_assert_msg(mean < 0.0014 && mean > 0x1p-14, "dim %zu: off by %g on average", some[d], mean);
            ck_assert_double_lt(s->error.max, 0x1p-8);
            ck_assert_double_eq_tol(mean, sum / ROW_COUNT, 1e-3 * mean);
            ck_assert_double_eq_tol(s->error.max, worst, 1e-3 * worst);
            set_free(s);
        }
}
END_TEST

START_TEST(every_length_keeps_its_precision) {
    static const float lengths[] = {1e-30f, 1e-17f, 1e-5f, 1, 1e6f, 1e17f};
    for (int metric = 0; metric < 3; metric++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            set *s = set_new((sl_metric)metric, 100, 0);
            s->error = (sl_quant_error){0};
            for (size_t r = 0; r < ROW_COUNT; r++) {
                for (size_t i = 0; i < 100; i++)
                    s->vectors[r][i] *= lengths[l] / 40;
                if (sl_vector_check((sl_metric)metric, SL_F32, s->vectors[r], 100) != SL_OK) continue;
                encode(s, r);
                check_round_trip(s, r);
            }
            ck_assert_double_lt(s->error.max, 0x1p-9);
            set_free(s);
        }
}
END_TEST

/* Zero, subnormal, constant, and one element far above the others. */
START_TEST(vectors_without_spread) {
    static const float values[] = {0, FLT_TRUE_MIN, 1e-40f, 1e-37f, 1e-20f, 1, -3, 5e17f};
    for (int metric = 0; metric < 3; metric++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++)
            for (int shape = 0; shape < 3; shape++) {
                set *s = set_new((sl_metric)metric, 65, 0xff);
                float decoded[MAX_DIM], *x = s->vectors[0];
                for (size_t i = 0; i < 65; i++)
                    x[i] = shape == 0 || i == 7 ? values[v] : shape == 1 ? 0 : values[v] / 1000;
                if (sl_vector_check((sl_metric)metric, SL_F32, x, 65) == SL_OK) {
                    encode(s, 0);
                    decode(s, 0, decoded);
                    for (size_t i = 0; i < 65; i++)
                        ck_assert_float_le(fabsf(decoded[i] - x[i]), fabsf(values[v]) / 250 + 1e-36f);
                    ck_assert(isfinite(sl_row_norm2(&s->codec, row_of(s, 0))));
                    if (shape == 0 && fabsf(values[v]) > 1e-30f)
                        ck_assert_float_le(fabsf(decoded[3] - x[3]), fabsf(values[v]) * 1e-6f);
                    for (size_t i = 0; i < 65 && values[v] == 0; i++)
                        ck_assert_float_eq(decoded[i], 0);
                }
                set_free(s);
            }
}
END_TEST

/* The row's old bytes don't matter, and the half byte that no element uses is zero. */
START_TEST(copies_have_equal_rows) {
    for (int metric = 0; metric < 3; metric++)
        for (int d = 0; d < DIMS; d++) {
            counter = 0;
            set *a = set_new((sl_metric)metric, dims[d], 0xff);
            counter = 0;
            set *b = set_new((sl_metric)metric, dims[d], 0x35);
            ck_assert_mem_eq(a->rows, b->rows, ROW_COUNT * a->codec.rows.pitch);
            ck_assert_mem_eq(a->rest, b->rest, ROW_COUNT * a->codec.rest.pitch);
            for (size_t r = 0; r < ROW_COUNT && dims[d] % 2; r++)
                ck_assert_uint_lt(row_of(a, r)[dims[d] / 2], 16);
            set_free(a);
            set_free(b);
        }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Scores
 * ------------------------------------------------------------------------------------------------------------- */

/* Queries keep 8 bits of each element for the walk and 16 for the ranking; rows count as decoded. */
static void check_query(const set *s, const float *q, const sl_query4 *query) {
    size_t dim = s->codec.dim;
    double most = 0, scale = s->codec.norm ? 1 / sqrt(double_dot(q, q, dim)) : 1;
    uint32_t ids[300];
    float walked[300], ranked[300];
    for (uint32_t i = 0; i < 300; i++)
        ids[i] = i * 7 % ROW_COUNT;
    for (size_t i = 0; i < dim; i++)
        most = fmax(most, fabs((double)q[i]));
    sl_kernels_best()->score[SL_CODES_I4](&s->codec.rows, &query->rows[0], ids, 300, 8, walked);
    sl_score4(sl_kernels_best(), &s->codec, query, ids, 300, ranked);
    for (size_t j = 0; j < 300; j++) {
        double four[MAX_DIM], both[MAX_DIM], dot4 = 0, dot = 0, size4 = 0, size = 0, norm2 = 0;
        decode_plainly(s, ids[j], four, both);
        for (size_t i = 0; i < dim; i++) {
            dot4 += four[i] * (double)q[i];
            dot += both[i] * (double)q[i];
            size4 += fabs(four[i]);
            size += fabs(both[i]);
            norm2 += both[i] * both[i];
        }
        double bias = s->codec.metric == SL_METRIC_L2 ? -norm2 / 2 : 0;
        double off4 = size4 * most * scale, off = (size + size4) * most * scale, round = fabs(bias) * 0x1p-21;
        ck_assert_double_eq_tol((double)walked[j], dot4 * scale + bias, off4 * 0.501 / 127 + round);
        ck_assert_double_eq_tol((double)ranked[j], dot * scale + bias, off * (0.501 / 127 / 127 + 0x1p-20) + round);
    }
}

START_TEST(scores_are_those_of_the_decoded_rows) {
    for (int metric = 0; metric < 3; metric++)
        for (int d = 0; d < DIMS; d++) {
            set *s = set_new((sl_metric)metric, dims[d], 0);
            uint8_t *buffer = array_of(sl_query4_size(&s->codec), 0xff);
            float scratch[MAX_DIM], q[MAX_DIM];
            sl_query4 query;
            for (size_t n = 0; n < 4; n++) {
                for (size_t i = 0; i < dims[d]; i++)
                    q[i] = n == 3 ? s->vectors[5][i] : bell();
                sl_encode_query4(&s->codec, q, buffer, scratch, &query, double_dot(q, q, dims[d]));
                check_query(s, q, &query);
            }
            free(buffer);
            set_free(s);
        }
}
END_TEST

/* Zero, subnormal and huge queries give finite scores. */
START_TEST(extreme_queries_stay_finite) {
    static const float values[] = {0, FLT_TRUE_MIN, 1e-40f, 1e-20f, 5e17f, -5e17f};
    for (int metric = 0; metric < 3; metric++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            set *s = set_new((sl_metric)metric, 64, 0);
            uint8_t *buffer = array_of(sl_query4_size(&s->codec), 0xff);
            float scratch[64], q[64], score;
            const uint32_t id = 3;
            sl_query4 query;
            for (size_t i = 0; i < 64; i++)
                q[i] = i % 3 ? values[v] : values[v] / 3;
            if (sl_vector_check((sl_metric)metric, SL_F32, q, 64) == SL_OK) {
                sl_encode_query4(&s->codec, q, buffer, scratch, &query, double_dot(q, q, 64));
                sl_score4(sl_kernels_best(), &s->codec, &query, &id, 1, &score);
                ck_assert(isfinite(score));
                if (values[v] == 0 && metric == SL_METRIC_IP) ck_assert_float_eq(score, 0);
            }
            free(buffer);
            set_free(s);
        }
}
END_TEST

/* Rows compared with one another by their 4 bits, larger is nearer: under L2 by their distance. */
START_TEST(rows_are_queries) {
    for (int metric = 0; metric < 3; metric++)
        for (int d = 0; d < DIMS; d++) {
            set *s = set_new((sl_metric)metric, dims[d], 0);
            uint8_t *buffer = array_of(2 * s->codec.rows.width, 0xff);
            double four[MAX_DIM], other[MAX_DIM], both[MAX_DIM];
            sl_query_code query;
            for (uint32_t a = 0; a < 5; a++) {
                sl_row_as_query(&s->codec, row_of(s, a), buffer, &query);
                decode_plainly(s, a, four, both);
                for (uint32_t b = 0; b < ROW_COUNT; b++) {
                    float score;
                    double dot = 0, size = 0, norm2 = 0;
                    sl_kernels_best()->score[SL_CODES_I4](&s->codec.rows, &query, &b, 1, 0, &score);
                    decode_plainly(s, b, other, both);
                    for (size_t i = 0; i < dims[d]; i++) {
                        dot += four[i] * other[i];
                        size += fabs(four[i] * other[i]);
                        norm2 += both[i] * both[i];
                    }
                    float stored = sl_row_norm2(&s->codec, row_of(s, b));
                    if (metric == SL_METRIC_COSINE) ck_assert_float_eq(stored, 1);
                    if (metric != SL_METRIC_COSINE) ck_assert_double_eq_tol((double)stored, norm2, 1e-5 * norm2);
                    double wanted = metric == SL_METRIC_L2 ? dot - norm2 / 2 : dot;
                    ck_assert_double_eq_tol((double)score, wanted, 1e-5 * (size + norm2));
                }
            }
            free(buffer);
            set_free(s);
        }
}
END_TEST

static int run_suite(void) {
    TCase *rows = tcase_create("rows");
    tcase_add_test(rows, geometry_of_both_rows);
    tcase_add_test(rows, both_rows_make_the_vector);
    tcase_add_test(rows, precision_is_that_of_twelve_bits);
    tcase_add_test(rows, every_length_keeps_its_precision);
    tcase_add_test(rows, vectors_without_spread);
    tcase_add_test(rows, copies_have_equal_rows);
    TCase *scores = tcase_create("scores");
    tcase_add_test(scores, scores_are_those_of_the_decoded_rows);
    tcase_add_test(scores, extreme_queries_stay_finite);
    tcase_add_test(scores, rows_are_queries);
    TCase *const all[] = {rows, scores};
    return check_main("encode4", all, 2);
}

int main(void) {
    if (sl_cpu_cap() != SL_ISA_COUNT && !sl_kernels_of(sl_cpu_cap())) {
        printf("skipped: this machine lacks %s\n", sl_isa_name(sl_cpu_cap()));
        return 77;
    }
    return run_suite();
}
