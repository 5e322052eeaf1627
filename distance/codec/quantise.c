#include "distance/codec/quantise.h"

#include "distance/lanes.h"

#include <math.h>

enum { TRIALS = 10 };

float sl_largest(const float *x, size_t n) {
    return largest_of(x, n);
}

/* Rounds to the nearest integer, ties to even. Adding 1.5 * 2^52 leaves the integer in the lower bits of the sum. */
static int32_t round_to_int(double value) {
    double shifted = value + 0x1.8p52;
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    return (int32_t)(uint32_t)bits;
}

/* Returns the value of one unit of the codes, rounded up, so that no element lies beyond the last level. Rounding comes
 * before use: codes times unit are then as near as codes can be, even if the unit is subnormal. */
static float unit_for(float most, double levels) {
    float unit = (float)((double)most / levels);
    if ((double)unit * levels >= (double)most) return unit;
    uint32_t bits;
    memcpy(&bits, &unit, sizeof bits);
    bits++;
    memcpy(&unit, &bits, sizeof unit);
    return unit;
}

static uint32_t bits_of_magnitude(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & 0x7fffffffu;
}

/* Magnitudes order as their bits do. The search halves the range of bits, so it needs no copy of x. */
float sl_quantile(const float *x, size_t n, double share) {
    size_t allowed = (size_t)(share * (double)n + 0.5);
    float most = sl_largest(x, n);
    uint32_t low = 0, high = bits_of_magnitude(most);
    while (allowed && low < high) {
        uint32_t middle = low + (high - low) / 2;
        size_t beyond = 0;
        for (size_t i = 0; i < n; i++)
            beyond += bits_of_magnitude(x[i]) > middle;
        if (beyond <= allowed)
            high = middle;
        else
            low = middle + 1;
    }
    if (high) memcpy(&most, &high, sizeof most);
    return most;
}

static double clamp_to(double value, double levels) {
    return value < -levels ? -levels : value > levels ? levels : value;
}

static double squared_error(const float *x, size_t n, float unit, double levels) {
    double inverse = unit > 0 ? 1 / (double)unit : 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        double off = (double)x[i] - (double)unit * round_to_int(clamp_to((double)x[i] * inverse, levels));
        sum += off * off;
    }
    return sum;
}

/* Tries ranges that put the largest element 0 to 4.5 codes beyond the last one, in steps of a half. A larger cut costs
 * more than the finer unit gains, unless many elements are about as large as the largest. */
static float best_unit(const float *x, size_t n, float most, double levels) {
    float best = unit_for(most, levels);
    double least = squared_error(x, n, best, levels);
    for (int trial = 1; trial < TRIALS; trial++) {
        float unit = unit_for((float)((double)most * (1 - 0.5 * trial / levels)), levels);
        double error = squared_error(x, n, unit, levels);
        if (error >= least) continue;
        least = error;
        best = unit;
    }
    return best;
}

/* Writes x as codes of a range that may cut off the largest elements. Returns their unit. */
static float quantise_clipped(sl_codes codes, sl_clip_rule rule, const float *x, size_t n, double levels, void *out) {
    float unit = rule.clip == SL_CLIP_QUANTILE ? unit_for(sl_quantile(x, n, rule.share), levels)
                                               : best_unit(x, n, sl_largest(x, n), levels);
    double inverse = unit > 0 ? 1 / (double)unit : 0;
    for (size_t i = 0; i < n; i++) {
        int32_t code = round_to_int(clamp_to((double)x[i] * inverse, levels));
        if (codes == SL_CODES_I8)
            ((int8_t *)out)[i] = (int8_t)code;
        else
            ((int16_t *)out)[i] = (int16_t)code;
    }
    return unit;
}

float sl_quantise(sl_codes codes, sl_clip_rule rule, const float *x, size_t n, void *out) {
    double levels = codes == SL_CODES_I8 ? 127 : 32767;
    if (rule.clip == SL_CLIP_QUANTILE || rule.clip == SL_CLIP_MSE)
        return quantise_clipped(codes, rule, x, n, levels, out);
    float unit = unit_for(sl_largest(x, n), levels);
    double inverse = unit > 0 ? 1 / (double)unit : 0;
    if (codes == SL_CODES_I8) {
        int8_t *bytes = out;
        for (size_t i = 0; i < n; i++)
            bytes[i] = (int8_t)round_to_int((double)x[i] * inverse);
    } else {
        int16_t *words = out;
        for (size_t i = 0; i < n; i++)
            words[i] = (int16_t)round_to_int((double)x[i] * inverse);
    }
    return unit;
}

void sl_split_byte(float *x, size_t n, float scale, int8_t *code, sl_query_code *out) {
    int32_t sum;
    float unit = sl_kernels_best()->split_byte(x, n, code, &sum);
    *out = (sl_query_code){.code = code, .offset = 128 * (int64_t)sum, .scale = unit * scale, .bias_scale = 0};
}

sl_quant_error sl_quant_error_of(double relative) {
    return (sl_quant_error){nearbyint(relative * 0x1p30) * 0x1p-30, relative, 1};
}

void sl_quant_error_merge(sl_quant_error *into, const sl_quant_error *from) {
    into->sum += from->sum;
    into->count += from->count;
    if (from->max > into->max) into->max = from->max;
}
