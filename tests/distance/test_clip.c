/* Clips: the range of a vector's codes, against plain arithmetic. */
#include "base/cpu.h"
#include "base/random.h"
#include "distance/codec/encode.h"
#include "distance/codec/encode4.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIM = 300, VECTORS = 60, ROW = 2048 };

static const size_t dims[] = {1, 2, 3, 16, 65, 100, 112, 257, 300};
#define DIMS (sizeof dims / sizeof *dims)

static uint64_t counter;

/* Draws roughly normal elements, some of them much larger. */
static void heavy_vector(size_t dim, float *x) {
    for (size_t i = 0; i < dim; i++) {
        double sum = -6;
        for (int j = 0; j < 12; j++)
            sum += sl_random_unit(31, counter++);
        x[i] = (float)(sl_random_at(32, counter) % 40 ? sum : 6 * sum);
    }
}

static sl_codec codec_of(size_t dim, sl_metric metric, sl_codes codes, sl_clip clip, double share) {
    sl_codec codec;
    ck_assert_int_eq(sl_codec_init(&codec, dim, metric, SL_F32, codes), SL_OK);
    ck_assert_int_eq(sl_codec_clip(&codec, clip, share), SL_OK);
    return codec;
}

START_TEST(own_clips_are_auto) {
    static const struct {
        sl_codes codes;
        sl_clip clip, becomes;
    } cases[] = {{SL_CODES_I8, SL_CLIP_MINMAX, SL_CLIP_AUTO},      {SL_CODES_I16, SL_CLIP_MINMAX, SL_CLIP_AUTO},
                 {SL_CODES_I4, SL_CLIP_MSE, SL_CLIP_AUTO},         {SL_CODES_I8, SL_CLIP_MSE, SL_CLIP_MSE},
                 {SL_CODES_I4, SL_CLIP_MINMAX, SL_CLIP_MINMAX},    {SL_CODES_I16, SL_CLIP_AUTO, SL_CLIP_AUTO},
                 {SL_CODES_I4, SL_CLIP_QUANTILE, SL_CLIP_QUANTILE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sl_codec codec = codec_of(8, SL_METRIC_IP, cases[i].codes, cases[i].clip, 0.25);
        ck_assert_int_eq((int)codec.clip.clip, (int)cases[i].becomes);
        ck_assert_double_eq(codec.clip.share, cases[i].becomes == SL_CLIP_QUANTILE ? 0.25 : 0);
    }
}
END_TEST

START_TEST(bad_clips_are_refused) {
    sl_codec codec;
    const double shares[] = {-0.001, 0.51, NAN, INFINITY};
    ck_assert_int_eq(sl_codec_init(&codec, 8, SL_METRIC_L2, SL_F32, SL_CODES_I8), SL_OK);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        ck_assert_int_eq(sl_codec_clip(&codec, SL_CLIP_QUANTILE, shares[i]), SL_EINVAL);
    ck_assert_int_eq(sl_codec_clip(&codec, SL_CLIP_MSE, NAN), SL_OK);
    ck_assert_int_eq(sl_codec_clip(&codec, (sl_clip)4, 0), SL_EINVAL);
    ck_assert_int_eq(sl_codec_init(&codec, 8, SL_METRIC_L2, SL_F32, SL_CODES_F32), SL_OK);
    ck_assert_int_eq(sl_codec_clip(&codec, SL_CLIP_MSE, 0), SL_EINVAL);
    ck_assert_int_eq(sl_codec_clip(&codec, SL_CLIP_AUTO, 0), SL_OK);
    ck_assert_int_eq(sl_codec_init(&codec, 8, SL_METRIC_L2, SL_U8, SL_CODES_I8), SL_OK);
    ck_assert_int_eq(sl_codec_clip(&codec, SL_CLIP_MINMAX, 0), SL_EINVAL);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "use clip auto"));
}
END_TEST

static int descending(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* Returns the magnitude that round(share * n) others exceed. */
static float sorted_quantile(const float *x, size_t n, double share) {
    float magnitudes[MAX_DIM];
    for (size_t i = 0; i < n; i++)
        magnitudes[i] = fabsf(x[i]);
    qsort(magnitudes, n, sizeof *magnitudes, descending);
    float found = magnitudes[(size_t)floor(share * (double)n + 0.5)];
    return found > 0 ? found : magnitudes[0];
}

static const double shares[] = {0, 0.01, 0.02, 0.07, 0.29, 0.49};
#define SHARES (sizeof shares / sizeof *shares)

START_TEST(quantiles_are_elements) {
    float x[MAX_DIM];
    for (size_t d = 0; d < DIMS; d++)
        for (size_t s = 0; s < SHARES; s++)
            for (int v = 0; v < VECTORS; v++) {
                heavy_vector(dims[d], x);
                if (v % 3 == 0) x[0] = x[dims[d] - 1] = -0.0F;
                ck_assert_float_eq(sl_quantile(x, dims[d], shares[s]), sorted_quantile(x, dims[d], shares[s]));
            }
    const float sparse[8] = {0, 0, -3, 0, 0, 0, 0, 0}, equal[4] = {2, -2, 2, 2}, zeros[4] = {0, -0.0F, 0, 0};
    ck_assert_float_eq(sl_quantile(sparse, 8, 0.25), 3);
    ck_assert_float_eq(sl_quantile(equal, 4, 0.5), 2);
    ck_assert_float_eq(sl_quantile(zeros, 4, 0.5), 0);
}
END_TEST

static double levels_of(sl_codes codes) {
    return codes == SL_CODES_I8 ? 127 : 32767;
}

static int code_at(sl_codes codes, const void *out, size_t i) {
    return codes == SL_CODES_I8 ? ((const int8_t *)out)[i] : ((const int16_t *)out)[i];
}

static double error_of(sl_codes codes, const float *x, size_t n, const void *out, float unit) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double off = (double)x[i] - (double)unit * code_at(codes, out, i);
        sum += off * off;
    }
    return sum;
}

/* Returns the codes of a unit, by their definition. */
static double error_at(const float *x, size_t n, float unit, double levels) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double code = fmax(-levels, fmin(levels, rint((double)x[i] / (double)unit)));
        double off = (double)x[i] - (double)unit * code;
        sum += off * off;
    }
    return sum;
}

START_TEST(clipped_codes_are_near_and_within) {
    static const sl_codes kinds[] = {SL_CODES_I8, SL_CODES_I16};
    float x[MAX_DIM];
    int16_t out[MAX_DIM];
    for (int k = 0; k < 2; k++)
        for (size_t d = 0; d < DIMS; d++)
            for (size_t s = 0; s < SHARES; s++) {
                double levels = levels_of(kinds[k]);
                sl_clip_rule rule = {SL_CLIP_QUANTILE, shares[s]};
                heavy_vector(dims[d], x);
                float most = sorted_quantile(x, dims[d], shares[s]),
                      unit = sl_quantise(kinds[k], rule, x, dims[d], out);
                ck_assert((double)unit * levels >= (double)most &&
                          (double)unit * levels <= (double)most * (1 + 2 * (double)FLT_EPSILON));
                for (size_t i = 0; i < dims[d]; i++) {
                    double scaled = fmax(-levels, fmin(levels, (double)x[i] / (double)unit));
                    ck_assert_double_le(fabs(code_at(kinds[k], out, i) - scaled), 0.5 + 1e-9);
                }
            }
}
END_TEST

/* The least of the ten errors is never above the largest magnitude's, and below it for one vector in ten. */
START_TEST(mse_takes_the_least_of_ten) {
    static const sl_codes kinds[] = {SL_CODES_I8, SL_CODES_I16};
    float x[MAX_DIM];
    int16_t out[MAX_DIM];
    size_t better = 0;
    for (int k = 0; k < 2; k++)
        for (size_t d = 0; d < DIMS; d++)
            for (int v = 0; v < VECTORS; v++) {
                double levels = levels_of(kinds[k]), least = INFINITY;
                heavy_vector(dims[d], x);
                float most = sl_largest(x, dims[d]), unit = sl_quantise(kinds[k], (sl_clip_rule){0}, x, dims[d], out);
                double whole = error_of(kinds[k], x, dims[d], out, unit);
                for (int trial = 0; trial < 10; trial++) {
                    float range = (float)((double)most * (1 - 0.5 * trial / levels)),
                          tried = (float)((double)range / levels);
                    if ((double)tried * levels < (double)range) tried = nextafterf(tried, INFINITY);
                    least = fmin(least, error_at(x, dims[d], tried, levels));
                }
                unit = sl_quantise(kinds[k], (sl_clip_rule){SL_CLIP_MSE, 0}, x, dims[d], out);
                double error = error_of(kinds[k], x, dims[d], out, unit);
                ck_assert_double_le(error, whole);
                ck_assert_double_eq_tol(error, least, 1e-6 * least + 1e-30);
                better += error < 0.98 * whole;
            }
    ck_assert_uint_gt(better, 2 * DIMS * VECTORS / 10);
}
END_TEST

static double error4(const sl_codec *codec, const float *x, float *factor) {
    static uint8_t row[ROW];
    *factor = sl_encode_levels(codec, x, row);
    double sum = 0;
    size_t half = (codec->dim + 1) / 2;
    for (size_t i = 0; i < codec->dim; i++) {
        int k = i < half ? row[i] % 16 : row[i - half] / 16;
        double off = (double)x[i] - (2 * k - 15) * (double)*factor;
        sum += off * off;
    }
    return sum;
}

/* The codes' own clip has the least error. A share beyond makes the step finer. */
START_TEST(clips_of_four_bits) {
    float x[MAX_DIM], factor;
    size_t finer = 0;
    for (size_t d = 0; d < DIMS; d++)
        for (int v = 0; v < VECTORS; v++) {
            heavy_vector(dims[d], x);
            sl_codec own = codec_of(dims[d], SL_METRIC_L2, SL_CODES_I4, SL_CLIP_AUTO, 0);
            sl_codec whole = codec_of(dims[d], SL_METRIC_L2, SL_CODES_I4, SL_CLIP_MINMAX, 0);
            sl_codec none = codec_of(dims[d], SL_METRIC_L2, SL_CODES_I4, SL_CLIP_QUANTILE, 0);
            sl_codec some = codec_of(dims[d], SL_METRIC_L2, SL_CODES_I4, SL_CLIP_QUANTILE, 0.1);
            double error = error4(&own, x, &factor), least = error4(&whole, x, &factor);
            float widest = factor;
            ck_assert_double_le(error, least * (1 + 1e-5));
            ck_assert_double_eq(error4(&none, x, &factor), least);
            (void)error4(&some, x, &factor);
            finer += dims[d] >= 16 && factor < 0.9F * widest;
        }
    ck_assert_uint_gt(finer, VECTORS * (DIMS - 3) / 2);
}
END_TEST

static float own_distance(const sl_codec *codec, const float *x) {
    static _Alignas(64) uint8_t row[ROW], buffer[2 * ROW];
    float scratch[MAX_DIM], floats[MAX_DIM], norm2, score;
    sl_query_code query;
    const uint32_t id = 0;
    sl_codec mine = *codec;
    mine.rows.base = row;
    sl_encode_row(&mine, x, SL_F32, row, scratch, NULL);
    sl_encode_query(&mine, x, SL_F32, buffer, floats, &query, &norm2);
    sl_kernels_best()->score[mine.codes](&mine.rows, &query, &id, 1, 0, &score);
    ck_assert(isfinite(score) && isfinite(norm2));
    return codec->metric == SL_METRIC_L2 ? (norm2 - 2 * score) / norm2 : 1 - score;
}

/* Rows and queries are clipped alike. */
START_TEST(a_vector_is_at_its_own_row) {
    static const sl_codes kinds[] = {SL_CODES_I8, SL_CODES_I16};
    float x[MAX_DIM];
    for (int k = 0; k < 2; k++)
        for (int clip = SL_CLIP_AUTO; clip <= SL_CLIP_QUANTILE; clip++)
            for (size_t d = 0; d < DIMS; d++)
                for (int metric = SL_METRIC_COSINE; metric <= SL_METRIC_L2; metric++) {
                    sl_codec codec = codec_of(dims[d], (sl_metric)metric, kinds[k], (sl_clip)clip, 0.05);
                    heavy_vector(dims[d], x);
                    ck_assert_float_le(fabsf(own_distance(&codec, x)), 2e-6F);
                }
}
END_TEST

START_TEST(extreme_vectors_are_clipped) {
    static const float values[] = {FLT_TRUE_MIN, 1e-40F, 1e-20F, 1e18F};
    for (size_t v = 0; v < sizeof values / sizeof *values; v++)
        for (int clip = SL_CLIP_AUTO; clip <= SL_CLIP_QUANTILE; clip++) {
            float x[64] = {values[v], values[v] / 3, -values[v]};
            sl_codec codec = codec_of(64, SL_METRIC_IP, SL_CODES_I8, (sl_clip)clip, 0.4);
            uint8_t row[ROW];
            float scratch[64], decoded[64];
            sl_encode_row(&codec, x, SL_F32, row, scratch, NULL);
            sl_decode_row(&codec, row, decoded);
            for (int i = 0; i < 64; i++)
                ck_assert_float_le(fabsf(decoded[i] - x[i]), values[v] / 50 + FLT_TRUE_MIN);
        }
}
END_TEST

int main(void) {
    if (sl_cpu_cap() != SL_ISA_COUNT && !sl_kernels_of(sl_cpu_cap())) {
        printf("skipped: this machine lacks %s\n", sl_isa_name(sl_cpu_cap()));
        return 77;
    }
    TCase *tests = tcase_create("clip");
    tcase_add_test(tests, own_clips_are_auto);
    tcase_add_test(tests, bad_clips_are_refused);
    tcase_add_test(tests, quantiles_are_elements);
    tcase_add_test(tests, clipped_codes_are_near_and_within);
    tcase_add_test(tests, mse_takes_the_least_of_ten);
    tcase_add_test(tests, clips_of_four_bits);
    tcase_add_test(tests, a_vector_is_at_its_own_row);
    tcase_add_test(tests, extreme_vectors_are_clipped);
    return check_main("clip", &tests, 1);
}
