#include "distance/codec/quantise.h"

#include "distance/lanes.h"

float sl_largest(const float *x, size_t n) {
    return largest_of(x, n);
}

/* Rounds to the nearest integer, ties to even. Adding 1.5 * 2^52 leaves the integer in the lower bits of the sum. */
static int32_t nearest(double value) {
    double shifted = value + 0x1.8p52;
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    return (int32_t)(uint32_t)bits;
}

/* Returns the value of one unit of the codes, rounded up, so that no element lies beyond the last level. It is rounded
 * before it is used: codes times unit then come as near as codes can, even if the unit is subnormal. */
static float unit_for(float most, double levels) {
    float unit = (float)((double)most / levels);
    if ((double)unit * levels >= (double)most) return unit;
    uint32_t bits;
    memcpy(&bits, &unit, sizeof bits);
    bits++;
    memcpy(&unit, &bits, sizeof unit);
    return unit;
}

float sl_quantise(sl_codes codes, const float *x, size_t n, void *out) {
    float unit = unit_for(sl_largest(x, n), codes == SL_CODES_I8 ? 127 : 32767);
    double inverse = unit > 0 ? 1 / (double)unit : 0;
    if (codes == SL_CODES_I8) {
        int8_t *bytes = out;
        for (size_t i = 0; i < n; i++)
            bytes[i] = (int8_t)nearest((double)x[i] * inverse);
    } else {
        int16_t *words = out;
        for (size_t i = 0; i < n; i++)
            words[i] = (int16_t)nearest((double)x[i] * inverse);
    }
    return unit;
}

void sl_take_byte(float *x, size_t n, float scale, int8_t *code, sl_query_code *out) {
    int32_t sum;
    float unit = sl_kernels_best()->take_byte(x, n, code, &sum);
    *out = (sl_query_code){.code = code, .offset = 128 * (int64_t)sum, .scale = unit * scale, .bias_scale = 0};
}

void sl_quant_error_merge(sl_quant_error *into, const sl_quant_error *from) {
    into->sum += from->sum;
    into->count += from->count;
    if (from->max > into->max) into->max = from->max;
}
