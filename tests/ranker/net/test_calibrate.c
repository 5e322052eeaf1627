/* Observers and ranges, against sorted values, plain loops and published clips. */
#include "ranker/net/calibrate.h"

#include "base/random.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 40000, METHODS = SL_CALIBRATIONS };

static const double PI = 3.14159265358979323846;

typedef float (*draw_fn)(uint64_t i);

static float normal(uint64_t i) {
    return (float)(sqrt(-2 * log(sl_random_unit(5, 2 * i))) * cos(2 * PI * sl_random_unit(5, 2 * i + 1)));
}
static float laplace(uint64_t i) {
    return (float)(log(sl_random_unit(6, i)) * (sl_random_at(7, i) % 2 ? 1 : -1));
}
static float uniform(uint64_t i) {
    return (float)(2 * sl_random_unit(8, i) - 1);
}
/* Half of the values are zeros, as after a ReLU, and a few are large. */
static float rectified(uint64_t i) {
    float value = normal(i);
    return value < 0 ? 0 : i % 5000 == 17 ? 20 * value : value;
}
static float lopsided(uint64_t i) {
    float value = normal(i);
    return value < 0 ? value / 8 : value;
}
static float negative(uint64_t i) {
    return -rectified(i) - 0.5F;
}

static const struct {
    const char *name;
    draw_fn draw;
} distributions[] = {{"normal", normal},       {"laplace", laplace},   {"uniform", uniform},
                     {"rectified", rectified}, {"lopsided", lopsided}, {"negative", negative}};
enum { DISTRIBUTIONS = sizeof distributions / sizeof *distributions };

static float *draw(draw_fn from, size_t n) {
    float *values = malloc(n * sizeof *values);
    ck_assert_ptr_nonnull(values);
    for (size_t i = 0; i < n; i++)
        values[i] = from(i);
    return values;
}

static sl_observer *observe_values(const float *values, size_t n) {
    sl_observer *observer;
    ck_assert_int_eq(sl_observer_create(NULL, &observer), SL_OK);
    sl_observer_add(observer, values, n);
    return observer;
}

static sl_quant_range range_of(const sl_observer *observer, const sl_range_rule *rule) {
    sl_quant_range range;
    sl_status status = sl_observer_range(observer, rule, &range);
    ck_assert_msg(status == SL_OK, "%s", sl_last_error());
    ck_assert(range.scale >= FLT_MIN && isfinite(range.scale));
    ck_assert(range.low <= 0 && range.high >= 0 && isfinite(range.low) && isfinite(range.high));
    return range;
}

static double first_code(const sl_range_rule *rule) {
    return rule->symmetric ? 1 - (double)(rule->levels / 2) : 0;
}
static double last_code(const sl_range_rule *rule) {
    return rule->symmetric ? (double)(rule->levels / 2) - 1 : (double)(rule->levels - 1);
}

/* Returns the value that the code of a value stands for. */
static double through_code(double value, const sl_quant_range *range, const sl_range_rule *rule) {
    double code = rint(value / (double)range->scale) + range->zero;
    code = fmax(first_code(rule), fmin(last_code(rule), code));
    return (code - range->zero) * (double)range->scale;
}

static double error_of(const float *values, size_t n, const sl_quant_range *range, const sl_range_rule *rule) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double off = (double)values[i] - through_code((double)values[i], range, rule);
        sum += off * off;
    }
    return sum;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Observers
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(extremes_and_counts) {
    const float values[] = {3, NAN, -2.5F, INFINITY, 0, -INFINITY, 1e-45F, 7.25F};
    sl_observer *observer = observe_values(values, 4);
    sl_observed seen = sl_observer_seen(observer);
    ck_assert(seen.count == 2 && seen.not_finite == 2 && seen.low == -2.5F && seen.high == 3);
    sl_observer_add(observer, values + 4, 4);
    sl_observer_add(observer, values, 0);
    seen = sl_observer_seen(observer);
    ck_assert(seen.count == 5 && seen.not_finite == 3 && seen.low == -2.5F && seen.high == 7.25F);
    sl_observer_clear(observer);
    seen = sl_observer_seen(observer);
    ck_assert(seen.count == 0 && seen.not_finite == 0 && seen.low == 0 && seen.high == 0);
    sl_observer_free(observer);
    sl_observer_free(NULL);
}
END_TEST

/* Ranges show an observer's content: quantiles of many shares read every filled bin. */
static void must_be_equal(const sl_observer *one, const sl_observer *other) {
    sl_observed a = sl_observer_seen(one), b = sl_observer_seen(other);
    ck_assert(a.count == b.count && a.not_finite == b.not_finite);
    ck_assert(!memcmp(&a.low, &b.low, sizeof a.low) && !memcmp(&a.high, &b.high, sizeof a.high));
    for (int method = 0; method < METHODS; method++)
        for (int symmetric = 0; symmetric < 2; symmetric++)
            for (int share = 1; share < (method == SL_CALIBRATION_QUANTILE ? 100 : 2); share++) {
                sl_range_rule rule = sl_range_rule_of((sl_calibration)method, symmetric);
                rule.skip_not_finite = 1;
                rule.quantile = share / 100.0;
                sl_quant_range x = range_of(one, &rule), y = range_of(other, &rule);
                ck_assert_msg(!memcmp(&x, &y, sizeof x), "method %d, symmetric %d, share %d", method, symmetric, share);
            }
}

/* Values of very different magnitudes, with the small ones first or last. */
static float spread(uint64_t i) {
    return ldexpf(laplace(i), (int)(i % 97) - 40);
}

START_TEST(order_and_division_change_nothing) {
    float *values = draw(spread, N);
    values[77] = NAN;
    values[78] = -0.0F;
    values[79] = 0;
    sl_observer *whole = observe_values(values, N), *backwards = observe_values(NULL, 0),
                *merged = observe_values(NULL, 0);
    for (size_t i = N; i-- > 0;)
        sl_observer_add(backwards, values + i, 1);
    must_be_equal(whole, backwards);
    for (size_t end = N, part = 1; end > 0; part = 3 * part + 1) {
        size_t n = part < end ? part : end;
        sl_observer *own = observe_values(values + end - n, n);
        sl_observer_merge(merged, own);
        sl_observer_free(own);
        end -= n;
    }
    must_be_equal(whole, merged);
    /* Magnitudes differ by more bits than a word has. */
    enum { SMALL = 1000 };
    sl_observer *large = observe_values(values, N / 2), *small = observe_values(NULL, 0),
                *taken = observe_values(values, N / 2);
    for (int exponent = -148; exponent < -148 + 64; exponent++) {
        float copies[SMALL];
        for (size_t i = 0; i < SMALL; i++)
            copies[i] = ldexpf(1, exponent);
        sl_observer_clear(small);
        sl_observer_add(small, copies, SMALL);
        sl_observer_merge(large, small);
        sl_observer_add(taken, copies, SMALL);
    }
    must_be_equal(large, taken);
    sl_observer_free(large);
    sl_observer_free(small);
    sl_observer_free(taken);
    sl_observer_merge(merged, backwards);
    ck_assert_uint_eq(sl_observer_seen(merged).count, 2 * (N - 1));
    sl_observer_free(whole);
    sl_observer_free(backwards);
    sl_observer_free(merged);
    free(values);
}
END_TEST

START_TEST(zeros_have_one_sign) {
    const float zeros[] = {0.0F, -0.0F};
    sl_observer *one = observe_values(zeros, 2), *other = observe_values(NULL, 0);
    sl_observer_add(other, zeros + 1, 1);
    sl_observer_add(other, zeros, 1);
    must_be_equal(one, other);
    sl_observer_free(one);
    sl_observer_free(other);
}
END_TEST

START_TEST(values_that_are_not_finite_are_told) {
    const float values[] = {1, NAN, 2};
    sl_observer *observer = observe_values(values, 3);
    sl_range_rule rule = sl_range_rule_of(SL_CALIBRATION_MINMAX, 0);
    sl_quant_range range;
    ck_assert_int_eq(sl_observer_range(observer, &rule, &range), SL_EVALUE);
    ck_assert_ptr_nonnull(strstr(sl_last_error(), "1 of 3"));
    rule.skip_not_finite = 1;
    range = range_of(observer, &rule);
    ck_assert_float_eq(range.scale, 2.0F / 255);
    sl_observer_free(observer);
}
END_TEST

START_TEST(a_failed_allocation_is_survived) {
    fault_allocator faults;
    fault_allocator_init(&faults, 1);
    sl_observer *observer;
    ck_assert_int_eq(sl_observer_create(&faults.allocator, &observer), SL_ENOMEM);
    ck_assert_ptr_null(observer);
    fault_allocator_init(&faults, 2);
    ck_assert_int_eq(sl_observer_create(&faults.allocator, &observer), SL_OK);
    sl_observer_add(observer, (const float[]){1, 2, 3}, 3);
    sl_range_rule rule = sl_range_rule_of(SL_CALIBRATION_MSE, 1);
    sl_quant_range range;
    ck_assert_int_eq(sl_observer_range(observer, &rule, &range), SL_ENOMEM);
    (void)range_of(observer, &rule);
    sl_observer_free(observer);
    ck_assert_uint_eq(faults.live_blocks, 0);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * From ends to codes
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(ends_become_codes) {
    const struct {
        double low, high;
        int symmetric;
        unsigned levels;
        float scale;
        int zero;
    } cases[] = {{-1, 3, 0, 256, 4.0F / 255, 64},
                 {-1, 3, 1, 256, 3.0F / 127, 0},
                 {-1, 3, 0, 128, 4.0F / 127, 32},
                 {-1, 3, 1, 128, 3.0F / 63, 0},
                 {-4, -1, 0, 256, 4.0F / 255, 255},
                 {-4, -1, 1, 256, 4.0F / 127, 0},
                 {2, 5, 0, 256, 5.0F / 255, 0},
                 {0, 0, 0, 256, 1, 0},
                 {0, 0, 1, 256, 1, 0},
                 {0, 1e-45, 0, 256, FLT_MIN, 0},
                 {-(double)FLT_MAX, (double)FLT_MAX, 0, 4, (float)(2 * (double)FLT_MAX / 3), 2},
                 {-7, 8, 0, 16, 1, 7}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sl_range_rule rule = sl_range_rule_of(SL_CALIBRATION_MINMAX, cases[i].symmetric);
        rule.levels = cases[i].levels;
        sl_quant_range range;
        ck_assert_int_eq(sl_quant_range_of(cases[i].low, cases[i].high, &rule, &range), SL_OK);
        ck_assert_msg(range.scale == cases[i].scale && range.zero == cases[i].zero, "case %zu: scale %.9g, zero %d", i,
                      (double)range.scale, range.zero);
        ck_assert(isfinite(range.low) && isfinite(range.high) && range.low <= 0 && range.high >= 0);
        ck_assert_double_eq(through_code(0, &range, &rule), 0);
        double first = (first_code(&rule) - range.zero) * (double)range.scale;
        if (first > -(double)FLT_MAX) ck_assert_float_eq(range.low, (float)first);
    }
}
END_TEST

START_TEST(bad_rules_are_refused) {
    sl_observer *observer = observe_values((const float[]){1}, 1);
    sl_range_rule rule = sl_range_rule_of(SL_CALIBRATION_QUANTILE, 0);
    sl_quant_range range;
    const unsigned levels[] = {0, 2, 5, 255, 258, 1u << 31};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        rule.levels = levels[i];
        ck_assert_int_eq(sl_observer_range(observer, &rule, &range), SL_EINVAL);
        ck_assert_int_eq(sl_quant_range_of(0, 1, &rule, &range), SL_EINVAL);
    }
    rule.levels = 256;
    const double shares[] = {-1e-9, 1, NAN, INFINITY};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        rule.quantile = shares[i];
        ck_assert_int_eq(sl_observer_range(observer, &rule, &range), SL_EINVAL);
    }
    rule = sl_range_rule_of((sl_calibration)METHODS, 0);
    ck_assert_int_eq(sl_observer_range(observer, &rule, &range), SL_EINVAL);
    rule = sl_range_rule_of(SL_CALIBRATION_MINMAX, 0);
    const double ends[][2] = {{NAN, 1}, {0, NAN}, {0, INFINITY}, {-1e39, 0}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        ck_assert_int_eq(sl_quant_range_of(ends[i][0], ends[i][1], &rule, &range), SL_EVALUE);
    ck_assert_int_eq(sl_quant_range_of(1, -1, &rule, &range), SL_EINVAL);
    sl_observer_free(observer);
}
END_TEST

START_TEST(values_without_a_range) {
    const float zeros[9] = {0}, constant[] = {2.5F, 2.5F, 2.5F}, one[] = {-3}, tiny[] = {1e-45F}, huge[] = {FLT_MAX};
    for (int method = 0; method < METHODS; method++)
        for (int symmetric = 0; symmetric < 2; symmetric++) {
            sl_range_rule rule = sl_range_rule_of((sl_calibration)method, symmetric);
            sl_quant_range range;
            sl_observer *observer = observe_values(NULL, 0);
            ck_assert_int_eq(sl_observer_range(observer, &rule, &range), SL_EINVAL);
            ck_assert_ptr_nonnull(strstr(sl_last_error(), "no finite value"));
            sl_observer_add(observer, zeros, 9);
            range = range_of(observer, &rule);
            ck_assert(range.scale == 1 && range.zero == 0);
            const struct {
                const float *values;
                size_t n;
            } sets[] = {{constant, 3}, {one, 1}, {huge, 1}};
            for (size_t i = 0; i < 3; i++) {
                sl_observer_clear(observer);
                sl_observer_add(observer, sets[i].values, sets[i].n);
                range = range_of(observer, &rule);
                double value = (double)sets[i].values[0];
                ck_assert_double_le(fabs(through_code(value, &range, &rule) - value), 0.002 * fabs(value));
            }
            sl_observer_clear(observer);
            sl_observer_add(observer, tiny, 1);
            ck_assert_float_eq(range_of(observer, &rule).scale, FLT_MIN);
            sl_observer_free(observer);
        }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * The methods
 * ------------------------------------------------------------------------------------------------------------- */

START_TEST(minmax_is_exact) {
    for (size_t d = 0; d < DISTRIBUTIONS; d++) {
        float *values = draw(distributions[d].draw, N);
        double low = 0, high = 0;
        for (size_t i = 0; i < N; i++) {
            low = fmin(low, (double)values[i]);
            high = fmax(high, (double)values[i]);
        }
        sl_observer *observer = observe_values(values, N);
        sl_range_rule rule = sl_range_rule_of(SL_CALIBRATION_MINMAX, 0);
        ck_assert_float_eq(range_of(observer, &rule).scale, (float)((high - low) / 255));
        rule.symmetric = 1;
        ck_assert_float_eq(range_of(observer, &rule).scale, (float)(fmax(-low, high) / 127));
        sl_observer_free(observer);
        free(values);
    }
}
END_TEST

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Returns the smallest value, at least 0, that at most `allowed` of the n sorted values exceed. */
static double exact_tail(const float *sorted, size_t n, double allowed) {
    double at = (double)sorted[n - 1 - (size_t)allowed];
    return at > 0 ? at : 0;
}

START_TEST(quantiles_leave_out_their_share) {
    const double shares[] = {0, 1e-4, 0.001, 0.02, 0.3};
    float *turned = malloc(N * sizeof *turned);
    for (size_t d = 0; d < DISTRIBUTIONS; d++) {
        float *values = draw(distributions[d].draw, N);
        sl_observer *observer = observe_values(values, N);
        sl_observed seen = sl_observer_seen(observer);
        double bin = fmax(-(double)seen.low, (double)seen.high) / 4096;
        for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
            sl_range_rule rule = sl_range_rule_of(SL_CALIBRATION_QUANTILE, 1);
            rule.quantile = shares[s];
            for (size_t i = 0; i < N; i++)
                turned[i] = fabsf(values[i]);
            qsort(turned, N, sizeof *turned, by_value);
            double exact = exact_tail(turned, N, shares[s] * N), found = 127 * (double)range_of(observer, &rule).scale;
            ck_assert_msg(found >= exact * (1 - 1e-6) && found <= exact + 1.001 * bin, "%s, share %g: %g for %g",
                          distributions[d].name, shares[s], found, exact);
            rule.symmetric = 0;
            found = 255 * (double)range_of(observer, &rule).scale;
            memcpy(turned, values, N * sizeof *turned);
            qsort(turned, N, sizeof *turned, by_value);
            exact = exact_tail(turned, N, shares[s] * N / 2);
            for (size_t i = 0; i < N; i++)
                turned[i] = -values[i];
            qsort(turned, N, sizeof *turned, by_value);
            exact += exact_tail(turned, N, shares[s] * N / 2);
            ck_assert_msg(found >= exact * (1 - 1e-6) && found <= exact + 2.001 * bin, "%s, share %g: %g for %g",
                          distributions[d].name, shares[s], found, exact);
        }
        sl_observer_free(observer);
        free(values);
    }
    free(turned);
}
END_TEST

/* Does as MXNet's contrib/quantization.py does, array by array. Returns the number of bins kept. */
static void smooth(double *counts, size_t n) {
    double zeros = 0, sum = 0;
    for (size_t i = 0; i < n; i++)
        zeros += counts[i] == 0;
    double eps = 0.0001, eps1 = eps * zeros / ((double)n - zeros);
    for (size_t i = 0; i < n; i++) {
        counts[i] += counts[i] == 0 ? eps : -eps1;
        sum += counts[i];
    }
    for (size_t i = 0; i < n; i++)
        counts[i] /= sum;
}

static size_t entropy_reference(const double *hist, size_t bins, size_t levels) {
    static double p[2048], q[2048];
    double least = INFINITY;
    size_t best = 0;
    for (size_t n = levels; n <= bins; n++) {
        double beyond = 0, divergence = 0, filled_q = 0;
        memcpy(p, hist, n * sizeof *p);
        for (size_t i = n; i < bins; i++)
            beyond += hist[i];
        p[n - 1] += beyond;
        memset(q, 0, sizeof q);
        size_t merged = n / levels;
        for (size_t level = 0; level < levels; level++) {
            size_t start = level * merged, stop = level == levels - 1 ? n : start + merged, norm = 0;
            double sum = 0;
            for (size_t i = start; i < stop; i++) {
                sum += hist[i];
                norm += p[i] != 0;
            }
            for (size_t i = start; i < stop; i++)
                if (p[i] != 0) q[i] = sum / (double)norm;
            filled_q += sum;
        }
        if (filled_q == 0) continue;
        smooth(p, n);
        smooth(q, n);
        for (size_t i = 0; i < n; i++)
            divergence += p[i] * log(p[i] / q[i]);
        if (divergence < least * (1 - 1e-9)) {
            least = divergence;
            best = n;
        }
    }
    return best;
}

/* Magnitudes in 1025 to 2048 bins, whose width is a power of two. */
static size_t magnitudes(const float *values, size_t n, double *hist, double *width) {
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)values[i]));
    *width = exp2(floor(log2(most)) - 10);
    memset(hist, 0, 2048 * sizeof *hist);
    for (size_t i = 0; i < n; i++)
        hist[(size_t)(fabs((double)values[i]) / *width)]++;
    return (size_t)(most / *width) + 1;
}

START_TEST(entropy_is_the_published_method) {
    static double hist[2048];
    for (size_t d = 0; d < DISTRIBUTIONS; d++)
        for (int symmetric = 0; symmetric < 2; symmetric++)
            for (unsigned levels = 128; levels <= 256; levels *= 2) {
                float *values = draw(distributions[d].draw, N);
                sl_observer *observer = observe_values(values, N);
                sl_observed seen = sl_observer_seen(observer);
                sl_range_rule rule = sl_range_rule_of(SL_CALIBRATION_ENTROPY, symmetric);
                rule.levels = levels;
                double width, low = fmin(0, (double)seen.low), high = fmax(0, (double)seen.high);
                size_t bins = magnitudes(values, N, hist, &width);
                int one_sided = low >= 0 || high <= 0;
                size_t kept = entropy_reference(hist, bins, one_sided && !symmetric ? levels : levels / 2);
                double clip = (double)kept * width;
                sl_quant_range want, got = range_of(observer, &rule);
                ck_assert_int_eq(sl_quant_range_of(fmax(low, -clip), fmin(high, clip), &rule, &want), SL_OK);
                ck_assert_msg(!memcmp(&want, &got, sizeof got), "%s, symmetric %d, %u levels: %g for %g",
                              distributions[d].name, symmetric, levels, (double)got.high, (double)want.high);
                sl_observer_free(observer);
                free(values);
            }
}
END_TEST

/* No range of a grid may beat the found range by more than the bins' width explains. */
START_TEST(mse_finds_the_least_error) {
    enum { SOME = 4000, GRID = 40 };
    for (size_t d = 0; d < DISTRIBUTIONS; d++)
        for (int symmetric = 0; symmetric < 2; symmetric++)
            for (unsigned levels = 16; levels <= 256; levels *= 16) {
                float *values = draw(distributions[d].draw, SOME);
                sl_observer *observer = observe_values(values, SOME);
                sl_observed seen = sl_observer_seen(observer);
                sl_range_rule rule = sl_range_rule_of(SL_CALIBRATION_MSE, symmetric);
                rule.levels = levels;
                sl_quant_range found = range_of(observer, &rule), other;
                double least = INFINITY, error = error_of(values, SOME, &found, &rule);
                double low = fmin(0, (double)seen.low), high = fmax(0, (double)seen.high);
                for (int a = low < 0 ? 1 : GRID; a <= GRID; a++)
                    for (int b = high > 0 ? 1 : GRID; b <= GRID; b++) {
                        ck_assert_int_eq(sl_quant_range_of(low * a / GRID, high * b / GRID, &rule, &other), SL_OK);
                        least = fmin(least, error_of(values, SOME, &other, &rule));
                    }
                ck_assert_msg(error <= 1.02 * least, "%s, symmetric %d, %u levels: %g, but %g is there",
                              distributions[d].name, symmetric, levels, error, least);
                sl_observer_free(observer);
                free(values);
            }
}
END_TEST

/* The best clips of Banner, Nahshan and Soudry 2019 (Post training 4-bit quantization), table of ACIQ: in standard
 * deviations of a normal and in b of a Laplace distribution. */
START_TEST(mse_finds_published_clips) {
    const struct {
        draw_fn draw;
        unsigned levels;
        double clip;
    } cases[] = {{normal, 16, 2.55}, {normal, 256, 3.92}, {laplace, 16, 5.03}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float *values = draw(cases[i].draw, 5 * N);
        sl_observer *observer = observe_values(values, (size_t)5 * N);
        sl_range_rule rule = sl_range_rule_of(SL_CALIBRATION_MSE, 1);
        rule.levels = cases[i].levels;
        double found = (double)range_of(observer, &rule).high;
        ck_assert_msg(fabs(found - cases[i].clip) < 0.1 * cases[i].clip, "case %zu: %g for %g", i, found,
                      cases[i].clip);
        sl_observer_free(observer);
        free(values);
    }
}
END_TEST

/* One value in twenty thousand is large. Quantile and entropy clip it. */
START_TEST(outliers_are_clipped) {
    float *values = draw(normal, N);
    for (size_t i = 0; i < N; i += 20000)
        values[i] = 500;
    sl_observer *observer = observe_values(values, N);
    for (int method = SL_CALIBRATION_QUANTILE; method <= SL_CALIBRATION_ENTROPY; method++)
        for (int symmetric = 0; symmetric < 2; symmetric++) {
            sl_range_rule rule = sl_range_rule_of((sl_calibration)method, symmetric);
            rule.quantile = 2e-4;
            sl_quant_range range = range_of(observer, &rule);
            ck_assert_msg(range.high < 70, "method %d: %g", method, (double)range.high);
        }
    sl_observer_free(observer);
    free(values);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("calibrate");
    tcase_add_test(tests, extremes_and_counts);
    tcase_add_test(tests, order_and_division_change_nothing);
    tcase_add_test(tests, zeros_have_one_sign);
    tcase_add_test(tests, values_that_are_not_finite_are_told);
    tcase_add_test(tests, a_failed_allocation_is_survived);
    tcase_add_test(tests, ends_become_codes);
    tcase_add_test(tests, bad_rules_are_refused);
    tcase_add_test(tests, values_without_a_range);
    tcase_add_test(tests, minmax_is_exact);
    tcase_add_test(tests, quantiles_leave_out_their_share);
    tcase_add_test(tests, entropy_is_the_published_method);
    tcase_add_test(tests, mse_finds_the_least_error);
    tcase_add_test(tests, mse_finds_published_clips);
    tcase_add_test(tests, outliers_are_clipped);
    return check_main("calibrate", &tests, 1);
}
