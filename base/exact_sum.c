#include "base/exact_sum.h"

#include <math.h>
#include <string.h>

/* An addition adds less than 2^52 to a chunk, which holds less than 2^33 after a carry. So 2,000 of them fit. */
#define MOST_PENDING 2000u

#define LOW_BITS UINT64_C(0xffffffff)

/* Carries, so that every chunk but the last holds 0 to 2^32 - 1. A value then has one form. */
static void carry(sl_exact_sum *sum) {
    for (size_t i = 0; i + 1 < SL_EXACT_CHUNKS; i++) {
        int64_t low = (int64_t)((uint64_t)sum->chunks[i] & LOW_BITS);
        sum->chunks[i + 1] += (sum->chunks[i] - low) / ((int64_t)1 << 32);
        sum->chunks[i] = low;
    }
    sum->pending = 0;
}

void sl_exact_add(sl_exact_sum *sum, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t exponent = bits >> 52 & 0x7ff, mantissa = bits & (((uint64_t)1 << 52) - 1);
    if (exponent)
        mantissa |= (uint64_t)1 << 52;
    else
        exponent = 1;
    uint64_t shift = exponent % 32;
    int64_t low = (int64_t)(mantissa << shift & LOW_BITS), high = (int64_t)(mantissa >> (32 - shift));
    int64_t *chunk = &sum->chunks[exponent / 32];
    int64_t sign = bits >> 63 ? -1 : 1;
    chunk[0] += sign * low;
    chunk[1] += sign * high;
    if (++sum->pending == MOST_PENDING) carry(sum);
}

/* Splits a number into two of 26 bits (Veltkamp 1968). */
static void split(double value, double *high, double *low) {
    double scaled = 134217729.0 * value; /* 2^27 + 1 */
    *high = scaled - (scaled - value);
    *low = value - *high;
}

void sl_exact_add_product(sl_exact_sum *sum, double a, double b) {
    double product = a * b, a_high, a_low, b_high, b_low;
    split(a, &a_high, &a_low);
    split(b, &b_high, &b_low);
    /* The rounding error of the product (Dekker 1971). */
    double error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
    sl_exact_add(sum, product);
    sl_exact_add(sum, error);
}

void sl_exact_merge(sl_exact_sum *sum, const sl_exact_sum *other) {
    sl_exact_sum carried = *other;
    carry(&carried);
    carry(sum);
    for (size_t i = 0; i < SL_EXACT_CHUNKS; i++)
        sum->chunks[i] += carried.chunks[i];
    sum->pending = 1;
}

/* Returns the sum times 2^-down. */
static double scaled_value(const sl_exact_sum *sum, int down) {
    sl_exact_sum carried = *sum;
    double value = 0;
    carry(&carried);
    for (int i = SL_EXACT_CHUNKS - 1; i >= 0; i--)
        value += ldexp((double)carried.chunks[i], 32 * i - 1075 - down);
    return value;
}

double sl_exact_value(const sl_exact_sum *sum) {
    double value = scaled_value(sum, 64);
    /* A small sum loses no bits this way, a large one does not overflow on the way. */
    return fabs(value) > 1e-200 ? ldexp(value, 64) : scaled_value(sum, 0);
}

double sl_exact_mean(const sl_exact_sum *sum, uint64_t n) {
    double value = scaled_value(sum, 64);
    return fabs(value) > 1e-200 ? ldexp(value / (double)n, 64) : scaled_value(sum, 0) / (double)n;
}

double sl_exact_deviation(const sl_exact_sum *sum, const sl_exact_sum *squares, uint64_t n) {
    sl_exact_sum rest = *sum, total = *squares;
    const double mean = sl_exact_mean(sum, n);
    /* squares - 2 mean sum + n mean^2. Three doubles hold the sum to 150 bits. */
    for (int i = 0; i < 3; i++) {
        double part = sl_exact_value(&rest);
        sl_exact_add(&rest, -part);
        sl_exact_add_product(&total, -2 * mean, part);
    }
    /* n mean^2, by the two doubles of the square. */
    const double square = mean * mean;
    sl_exact_sum error = {.pending = 0};
    sl_exact_add_product(&error, mean, mean);
    sl_exact_add(&error, -square);
    sl_exact_add_product(&total, (double)n, square);
    sl_exact_add_product(&total, (double)n, sl_exact_value(&error));
    const double deviation = sl_exact_value(&total);
    return deviation > 0 ? deviation : 0;
}
