/* The loops of loops.h, over lanes of floats. A tier's file defines LOOP_TABLE, LOOP_NAME and LANE_BITS, and includes
 * this file last. */
#ifndef SL_RANKER_NET_LOOPS_BODY_H
#define SL_RANKER_NET_LOOPS_BODY_H

#include "base/random.h"
#include "ranker/net/bf16_lanes.h"
#include "ranker/net/loops.h"

/* Returns the bits of `a` where mask is set, and of `b` elsewhere. */
static AI F lane_choose(I mask, F a, F b) {
    return (F)(((I)a & mask) | ((I)b & ~mask));
}

static AI float lane_sum(F a) {
    typedef float Q __attribute__((vector_size(16)));
    Q quarters[LANE_F / 4];
    memcpy(quarters, &a, sizeof quarters);
    for (size_t i = 1; i < LANE_F / 4; i++)
        quarters[0] += quarters[i];
    return (quarters[0][0] + quarters[0][1]) + (quarters[0][2] + quarters[0][3]);
}

static AI F lane_abs(F a) {
    return (F)((I)a & 0x7fffffff);
}

/* ---- Activations ---- */

/* Returns e^x for x <= 0, within 2 ulp, and e^-87 for x below -87. With x = n ln 2 + r and |r| <= ln 2 / 2, a
 * polynomial gives e^r, and the exponent's bits give 2^n. NaN gives NaN. */
static AI F lane_exp(F x) {
    F low = lane_choose(x < -87.0f, lane_splat(-87.0f), x);
    const float round = 12582912.0f; /* 1.5 * 2^23: a sum with it has the whole number in its lowest bits */
    F shifted = lane_fma(low, lane_splat(1.44269504f), lane_splat(round));
    F n = shifted - round;
    F r = lane_fma(n, lane_splat(-0.693145752f), low);
    r = lane_fma(n, lane_splat(-1.42860677e-6f), r);
    F p = lane_splat(1.0f / 720);
    p = lane_fma(p, r, lane_splat(1.0f / 120));
    p = lane_fma(p, r, lane_splat(1.0f / 24));
    p = lane_fma(p, r, lane_splat(1.0f / 6));
    p = lane_fma(p, r, lane_splat(0.5f));
    p = lane_fma(p, r, lane_splat(1.0f));
    p = lane_fma(p, r, lane_splat(1.0f));
    F scaled = (F)((I)p + ((I)shifted << 23));
    return lane_choose(x == x, scaled, x);
}

static AI F lane_tanh(F z) {
    F e = lane_exp(lane_abs(z) * -2.0f);
    F t = (1.0f - e) / (1.0f + e);
    return (F)((I)t | ((I)z & INT32_MIN));
}

/* Returns the normal distribution function, by Abramowitz and Stegun 7.1.26, within 1.5e-7. *density gets the
 * density. */
static AI F lane_normal(F z, F *density) {
    F y = lane_abs(z) * 0.707106781f;
    F e = lane_exp(y * -y);
    F t = 1.0f / lane_fma(y, lane_splat(0.3275911f), lane_splat(1.0f));
    F p = lane_splat(1.061405429f);
    p = lane_fma(p, t, lane_splat(-1.453152027f));
    p = lane_fma(p, t, lane_splat(1.421413741f));
    p = lane_fma(p, t, lane_splat(-0.284496736f));
    p = lane_fma(p, t, lane_splat(0.254829592f));
    F upper = p * t * e * 0.5f;
    *density = e * 0.398942280f;
    return lane_choose(z < 0.0f, upper, 1.0f - upper);
}

static AI F lane_act(F z, sl_activation activation) {
    F density;
    switch (activation) {
    case SL_RELU:
        return lane_choose(z < 0.0f, lane_splat(0), z);
    case SL_GELU:
        return z * lane_normal(z, &density);
    case SL_TANH:
        return lane_tanh(z);
    case SL_LINEAR:
        break;
    }
    return z;
}

/* Returns the activation's derivative. `out` is that of sl_loops.backward. */
static AI F lane_slope(F out, sl_activation activation, F unscale) {
    F density, t;
    switch (activation) {
    case SL_RELU:
        return lane_choose(out > 0.0f, lane_splat(1), lane_splat(0));
    case SL_GELU:
        t = lane_normal(out, &density);
        return lane_fma(out, density, t);
    case SL_TANH:
        t = out * unscale;
        return 1.0f - t * t;
    case SL_LINEAR:
        break;
    }
    return lane_splat(1);
}

/* Calls `loop`, an always-inline function, with a constant activation, so that its inner loop has no branch. */
#define WITH_ACTIVATION(activation, loop, ...)                                                                         \
    switch (activation) {                                                                                              \
    case SL_RELU:                                                                                                      \
        loop(__VA_ARGS__, SL_RELU);                                                                                    \
        return;                                                                                                        \
    case SL_GELU:                                                                                                      \
        loop(__VA_ARGS__, SL_GELU);                                                                                    \
        return;                                                                                                        \
    case SL_TANH:                                                                                                      \
        loop(__VA_ARGS__, SL_TANH);                                                                                    \
        return;                                                                                                        \
    case SL_LINEAR:                                                                                                    \
        loop(__VA_ARGS__, SL_LINEAR);                                                                                  \
    }

/* Loads n lanes of the item's part from element i on. */
static AI F lane_item(const sl_first_row *row, size_t i, size_t n, sl_dtype type) {
    if (type == SL_BF16) return lane_bf16((const uint16_t *)row->item + i, n);
    if (type == SL_I8) return lane_i8((const int8_t *)row->item + i, n) * row->item_scale;
    return lane_f32((const float *)row->item + i, n);
}

/* Returns n lanes of the sum of a row's parts, from element i on. */
static AI F lane_sums(const sl_first_row *row, size_t i, size_t n, sl_dtype type, int with_pair) {
    F sum = lane_f32(row->user + i, n) + lane_item(row, i, n, type);
    if (with_pair) sum = sum + lane_f32(row->pair + i, n);
    return sum;
}

static AI void join_parts(const sl_first_row *row, size_t n, float *out, sl_dtype type, int with_pair,
                          sl_activation activation) {
    size_t i = 0;
    for (; i + LANE_F <= n; i += LANE_F)
        lane_store_f32(out + i, lane_act(lane_sums(row, i, LANE_F, type, with_pair), activation), LANE_F);
    if (i < n) lane_store_f32(out + i, lane_act(lane_sums(row, i, n - i, type, with_pair), activation), n - i);
}

static AI void join_type(const sl_first_row *row, size_t n, float *out, sl_activation activation, sl_dtype type) {
    if (row->pair) {
        WITH_ACTIVATION(activation, join_parts, row, n, out, type, 1)
    } else {
        WITH_ACTIVATION(activation, join_parts, row, n, out, type, 0)
    }
}

static void join(const sl_first_row *row, size_t n, sl_activation activation, float *out) {
    if (row->item_type == SL_BF16)
        join_type(row, n, out, activation, SL_BF16);
    else if (row->item_type == SL_I8)
        join_type(row, n, out, activation, SL_I8);
    else
        join_type(row, n, out, activation, SL_F32);
}

static AI void activate_all(const float *z, size_t n, float *out, sl_activation activation) {
    size_t i = 0;
    for (; i + LANE_F <= n; i += LANE_F)
        lane_store_f32(out + i, lane_act(lane_f32(z + i, LANE_F), activation), LANE_F);
    if (i < n) lane_store_f32(out + i, lane_act(lane_f32(z + i, n - i), activation), n - i);
}

static void activate(const float *z, size_t n, sl_activation activation, float *out) {
    WITH_ACTIVATION(activation, activate_all, z, n, out)
}

/* It takes the exponential of a negative number, which cannot overflow. */
static AI F lane_sigmoid(F z) {
    F e = lane_choose(z < -87.0f, lane_splat(0), lane_exp(-lane_abs(z)));
    F upper = 1.0f / (1.0f + e);
    return lane_choose(z < 0.0f, e * upper, upper);
}

static void sigmoid(float *values, size_t n) {
    size_t i = 0;
    for (; i + LANE_F <= n; i += LANE_F)
        lane_store_f32(values + i, lane_sigmoid(lane_f32(values + i, LANE_F)), LANE_F);
    if (i < n) lane_store_f32(values + i, lane_sigmoid(lane_f32(values + i, n - i)), n - i);
}

static AI void backward_rows(const float *out, float *gradient, size_t rows, size_t n, F unscale, float *sums,
                             sl_activation activation) {
    for (size_t r = 0; r < rows; r++, out += n, gradient += n) {
        size_t i = 0;
        for (; i + LANE_F <= n; i += LANE_F) {
            F g = lane_f32(gradient + i, LANE_F) * lane_slope(lane_f32(out + i, LANE_F), activation, unscale);
            lane_store_f32(gradient + i, g, LANE_F);
            lane_store_f32(sums + i, lane_f32(sums + i, LANE_F) + g, LANE_F);
        }
        if (i < n) {
            F g = lane_f32(gradient + i, n - i) * lane_slope(lane_f32(out + i, n - i), activation, unscale);
            lane_store_f32(gradient + i, g, n - i);
            lane_store_f32(sums + i, lane_f32(sums + i, n - i) + g, n - i);
        }
    }
}

static void backward(const float *out, float *gradient, size_t rows, size_t n, sl_activation activation,
                     float out_scale, float *column_sums) {
    F unscale = lane_splat(1.0f / out_scale);
    WITH_ACTIVATION(activation, backward_rows, out, gradient, rows, n, unscale, column_sums)
}

/* ---- Sums ---- */

static void add(float *to, const float *from, size_t n) {
    size_t i = 0;
    for (; i + LANE_F <= n; i += LANE_F)
        lane_store_f32(to + i, lane_f32(to + i, LANE_F) + lane_f32(from + i, LANE_F), LANE_F);
    if (i < n) lane_store_f32(to + i, lane_f32(to + i, n - i) + lane_f32(from + i, n - i), n - i);
}

static void add_scaled(float *to, const float *from, float factor, size_t n) {
    F f = lane_splat(factor);
    size_t i = 0;
    for (; i + LANE_F <= n; i += LANE_F)
        lane_store_f32(to + i, lane_fma(lane_f32(from + i, LANE_F), f, lane_f32(to + i, LANE_F)), LANE_F);
    if (i < n) lane_store_f32(to + i, lane_fma(lane_f32(from + i, n - i), f, lane_f32(to + i, n - i)), n - i);
}

static float dot(const float *a, const float *b, size_t n) {
    F s = {0}, t = {0};
    size_t i = 0;
    for (; i + 2 * LANE_F <= n; i += 2 * LANE_F) {
        s = lane_fma(lane_f32(a + i, LANE_F), lane_f32(b + i, LANE_F), s);
        t = lane_fma(lane_f32(a + i + LANE_F, LANE_F), lane_f32(b + i + LANE_F, LANE_F), t);
    }
    if (i + LANE_F <= n) {
        s = lane_fma(lane_f32(a + i, LANE_F), lane_f32(b + i, LANE_F), s);
        i += LANE_F;
    }
    if (i < n) t = lane_fma(lane_f32(a + i, n - i), lane_f32(b + i, n - i), t);
    return lane_sum(s + t);
}

/* ---- Codes of embeddings ---- */

static AI F decode_lanes(F codes, F scale, F offset, const float *out, size_t n, sl_decode how) {
    F x = lane_fma(codes, scale, offset);
    if (how == SL_DECODE_ADD) return lane_f32(out, n) + x;
    if (how == SL_DECODE_SET) return x;
    F before = lane_f32(out, n);
    return lane_choose(x > before, x, before);
}

/* `bits` and `how` are compile-time constants. */
static AI void decode_all(const uint8_t *codes, float scale, float offset, size_t n, float *out, int bits,
                          sl_decode how) {
    F by = lane_splat(scale), from = lane_splat(offset);
    size_t i = 0;
    for (; i + LANE_F <= n; i += LANE_F) {
        F c = bits == 8 ? lane_u8(codes + i) : lane_u4(codes + i / 2);
        lane_store_f32(out + i, decode_lanes(c, by, from, out + i, LANE_F, how), LANE_F);
    }
    if (i < n) {
        F c = bits == 8 ? lane_u8(codes + i) : lane_u4(codes + i / 2);
        lane_store_f32(out + i, decode_lanes(c, by, from, out + i, n - i, how), n - i);
    }
}

static AI void decode_bits(const uint8_t *codes, float scale, float offset, size_t n, sl_decode how, float *out,
                           int bits) {
    switch (how) {
    case SL_DECODE_SET:
        decode_all(codes, scale, offset, n, out, bits, SL_DECODE_SET);
        break;
    case SL_DECODE_ADD:
        decode_all(codes, scale, offset, n, out, bits, SL_DECODE_ADD);
        break;
    case SL_DECODE_MAX:
        decode_all(codes, scale, offset, n, out, bits, SL_DECODE_MAX);
        break;
    }
}

static void decode8(const uint8_t *codes, float scale, float offset, size_t n, sl_decode how, float *out) {
    decode_bits(codes, scale, offset, n, how, out, 8);
}

static void decode4(const uint8_t *codes, float scale, float offset, size_t n, sl_decode how, float *out) {
    decode_bits(codes, scale, offset, n, how, out, 4);
}

/* ---- Matrix products ---- */

/* A block is 4 rows by 2 registers, or 1 row by 8. Its sums stay in registers over all of `in`. */

enum { BLOCK_ROWS = 4, BLOCK_WIDTH = 2, ROW_WIDTH = 8 };

/* Multiplies `width` registers of columns from `at`. The last register has `lanes` lanes. `rows` and `width` are
 * compile-time constants, and so is `lanes` of a full register. */
static AI void product_block(const sl_plain_product *p, size_t row, size_t rows, size_t at, size_t width,
                             size_t lanes) {
    F sums[BLOCK_ROWS][ROW_WIDTH];
    for (size_t c = 0; c < width; c++) {
        const float *bias = p->bias + at + c * LANE_F;
        F begin = !p->bias                           ? lane_splat(0)
                  : c + 1 < width || lanes == LANE_F ? lane_f32(bias, LANE_F)
                                                     : lane_f32(bias, lanes);
        for (size_t r = 0; r < rows; r++)
            sums[r][c] = begin;
    }
    for (size_t k = 0; k < p->in; k++) {
        const float *weights = p->weights + k * p->out + at;
        for (size_t c = 0; c < width; c++) {
            const float *from = weights + c * LANE_F;
            F w = c + 1 < width || lanes == LANE_F ? lane_f32(from, LANE_F) : lane_f32(from, lanes);
            for (size_t r = 0; r < rows; r++)
                sums[r][c] = lane_fma(lane_splat(p->src[(row + r) * p->stride + k]), w, sums[r][c]);
        }
    }
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < width; c++) {
            float *to = p->dst + (row + r) * p->out + at + c * LANE_F;
            if (c + 1 < width || lanes == LANE_F)
                lane_store_f32(to, sums[r][c], LANE_F);
            else
                lane_store_f32(to, sums[r][c], lanes);
        }
    }
}

static AI void product_rows(const sl_plain_product *p, size_t row, size_t rows, size_t width) {
    size_t at = 0;
    for (; at + width * LANE_F <= p->out; at += width * LANE_F)
        product_block(p, row, rows, at, width, LANE_F);
    for (; width == ROW_WIDTH && at + BLOCK_WIDTH * LANE_F <= p->out; at += BLOCK_WIDTH * LANE_F)
        product_block(p, row, rows, at, BLOCK_WIDTH, LANE_F);
    for (; at + LANE_F <= p->out; at += LANE_F)
        product_block(p, row, rows, at, 1, LANE_F);
    if (at < p->out) product_block(p, row, rows, at, 1, p->out - at);
}

/* Multiplies by one column, whose weights lie like a row. */
static void product_column(const sl_plain_product *p) {
    float bias = p->bias ? *p->bias : 0;
    for (size_t r = 0; r < p->rows; r++)
        p->dst[r] = bias + dot(p->src + r * p->stride, p->weights, p->in);
}

static void product(const sl_plain_product *p) {
    size_t row = 0;
    if (p->out == 1) {
        product_column(p);
        return;
    }
    for (; row + BLOCK_ROWS <= p->rows; row += BLOCK_ROWS)
        product_rows(p, row, BLOCK_ROWS, BLOCK_WIDTH);
    for (; row < p->rows; row++)
        product_rows(p, row, 1, ROW_WIDTH);
}

/* ---- Training ---- */

/* One hash decides for four elements, by 16 bits each. */
static void dropout(float *values, size_t rows, size_t n, const sl_dropout *drop) {
    size_t groups = (n + 3) / 4;
    float factor[2] = {drop->scale, 0};
    for (size_t r = 0; r < rows; r++, values += n) {
        uint64_t counter = (uint64_t)(drop->first_row + r) * groups;
        for (size_t g = 0; g < n / 4; g++) {
            uint64_t bits = sl_random_at(drop->seed, counter + g);
            for (size_t j = 0; j < 4; j++)
                values[4 * g + j] *= factor[(bits >> 16 * j & 0xffff) < drop->threshold];
        }
        for (size_t i = n / 4 * 4; i < n; i++)
            values[i] *= factor[(sl_random_at(drop->seed, counter + i / 4) >> 16 * (i % 4) & 0xffff) < drop->threshold];
    }
}

/* ---- Rounding to 16 bits, by the bits of floats ---- */

#define F16_LEAST    6.103515625e-5f /* 2^-14: the least normal number */
#define F16_REBIAS   0x38000000u     /* 112 << 23: difference of the exponents' biases */
#define F16_INFINITY 0x7c00u
#define F16_NAN      0x7e00u

/* Returns the magnitude rounded to F16, as a float. Below 2^-14, the numbers of F16 are multiples of 2^-24, the unit of
 * a float between 0.5 and 1. */
static AI F f16_magnitude(F magnitude) {
    U bits = (U)magnitude, rounded = (bits + 0xfffu + (bits >> 13 & 1)) & ~0x1fffu;
    F value = lane_choose(magnitude < F16_LEAST, (magnitude + 0.5f) - 0.5f, (F)rounded);
    value = lane_choose(magnitude >= 65520.0f, lane_splat(INFINITY), value);
    return lane_choose(magnitude == magnitude, value, magnitude);
}

/* Returns F16 bits in the lower half of each lane. */
static AI U f16_lanes(F x) {
    F value = f16_magnitude(lane_abs(x));
    U tiny = (U)(value + 0.5f) - (U)lane_splat(0.5f), all = ((U)value - F16_REBIAS) >> 13;
    F bits = lane_choose(value < F16_LEAST, (F)tiny, (F)all);
    bits = lane_choose(value <= 65504.0f, bits, (F)((U){0} + F16_INFINITY));
    bits = lane_choose(value == value, bits, (F)((U){0} + F16_NAN));
    return (U)bits | ((U)x >> 16 & 0x8000u);
}

static AI U half_bits(F x, sl_dtype type) {
    return type == SL_BF16 ? bf16_lanes(x) >> 16 : f16_lanes(x);
}

static AI F half_value(F x, sl_dtype type) {
    if (type == SL_BF16) return (F)(bf16_lanes(x) & 0xffff0000u);
    return (F)((U)f16_magnitude(lane_abs(x)) | ((U)x & 0x80000000u));
}

static AI void narrow_all(const float *from, size_t n, uint16_t *to, sl_dtype type) {
    size_t i = 0;
    for (; i + LANE_F <= n; i += LANE_F) {
        H half = __builtin_convertvector(half_bits(lane_f32(from + i, LANE_F), type), H);
        memcpy(to + i, &half, sizeof half);
    }
    if (i < n) {
        H half = __builtin_convertvector(half_bits(lane_f32(from + i, n - i), type), H);
        memcpy(to + i, &half, (n - i) * sizeof *to);
    }
}

static void narrow(const float *from, size_t n, sl_dtype type, uint16_t *to) {
    if (type == SL_BF16)
        narrow_all(from, n, to, SL_BF16);
    else
        narrow_all(from, n, to, SL_F16);
}

static AI void round_all(const float *from, size_t n, float *to, sl_dtype type) {
    size_t i = 0;
    for (; i + LANE_F <= n; i += LANE_F)
        lane_store_f32(to + i, half_value(lane_f32(from + i, LANE_F), type), LANE_F);
    if (i < n) lane_store_f32(to + i, half_value(lane_f32(from + i, n - i), type), n - i);
}

static void round_to_half(const float *from, size_t n, sl_dtype type, float *to) {
    if (type == SL_BF16)
        round_all(from, n, to, SL_BF16);
    else
        round_all(from, n, to, SL_F16);
}

/* ---- Fake quantisation ---- */

/* Rounds to the nearest whole number, ties to even. Magnitudes are at most 2^22. */
static AI F lane_round(F x) {
    const float round = 12582912.0f; /* 1.5 * 2^23: a sum with it is rounded to a whole number */
    return (x + round) - round;
}

static AI F lane_clip(F x, float low, float high) {
    F cut = lane_choose(x < low, lane_splat(low), x);
    return lane_choose(cut > high, lane_splat(high), cut);
}

/* Returns a code, rounded and clamped; NaN if `of`, which it was made from, is not finite. */
static AI F lane_code(F code, F of) {
    return lane_round(lane_clip(code, 0, 255)) + (of - of);
}

static AI F lane_fake(F x, F unit, F zero) {
    F scaled = x * unit;
    return lane_code(scaled + zero, x) - zero;
}

static void fake(const float *values, size_t n, const sl_int8_range *range, float *steps) {
    const F unit = lane_splat(1 / range->scale), zero = lane_splat((float)range->zero);
    size_t i = 0;
    for (; i + LANE_F <= n; i += LANE_F)
        lane_store_f32(steps + i, lane_fake(lane_f32(values + i, LANE_F), unit, zero), LANE_F);
    if (i < n) lane_store_f32(steps + i, lane_fake(lane_f32(values + i, n - i), unit, zero), n - i);
}

/* The sums of sl_fake_sums, by lanes. */
typedef struct lane_sums_of_fake {
    F inside, below, above;
} lane_sums_of_fake;

/* Returns gradients by values from gradients by steps. */
static AI F lane_fake_slope(F value, F gradient, F unit, F zero, lane_sums_of_fake *sums) {
    F scaled = value * unit, code = scaled + zero;
    I below = code<-0.5f, above = code> 255.5f;
    F kept = lane_choose(below | above, lane_splat(0), gradient);
    sums->inside += kept * (lane_round(lane_clip(code, 0, 255)) - lane_clip(code, -0.5f, 255.5f));
    sums->below += lane_choose(below, gradient, lane_splat(0));
    sums->above += lane_choose(above, gradient, lane_splat(0));
    return kept * unit;
}

static void fake_backward(const float *values, float *gradient, size_t n, const sl_int8_range *range,
                          sl_fake_sums *sums) {
    const F unit = lane_splat(1 / range->scale), zero = lane_splat((float)range->zero);
    lane_sums_of_fake lanes = {{0}, {0}, {0}};
    size_t i = 0;
    for (; i + LANE_F <= n; i += LANE_F) {
        F g = lane_f32(gradient + i, LANE_F);
        lane_store_f32(gradient + i, lane_fake_slope(lane_f32(values + i, LANE_F), g, unit, zero, &lanes), LANE_F);
    }
    if (i < n) {
        F g = lane_f32(gradient + i, n - i);
        lane_store_f32(gradient + i, lane_fake_slope(lane_f32(values + i, n - i), g, unit, zero, &lanes), n - i);
    }
    sums->inside += (double)lane_sum(lanes.inside);
    sums->below += (double)lane_sum(lanes.below);
    sums->above += (double)lane_sum(lanes.above);
}

static AI F lane_fake_weight(F weight, F unit) {
    return lane_round(lane_clip(weight * unit, -127, 127));
}

static void fake_weights(const float *weights, size_t rows, size_t n, size_t stride, const float *units, float *steps) {
    for (size_t r = 0; r < rows; r++, weights += stride, steps += stride) {
        size_t i = 0;
        for (; i + LANE_F <= n; i += LANE_F)
            lane_store_f32(steps + i, lane_fake_weight(lane_f32(weights + i, LANE_F), lane_f32(units + i, LANE_F)),
                           LANE_F);
        if (i < n)
            lane_store_f32(steps + i, lane_fake_weight(lane_f32(weights + i, n - i), lane_f32(units + i, n - i)),
                           n - i);
    }
}

/* Returns gradients by weights from gradients by steps. A clipped weight moves with the scale alone: it is 127
 * steps. */
static AI F lane_weight_slope(F weight, F gradient, F unit, F *by_log_scale) {
    F steps = weight * unit, code = lane_round(lane_clip(steps, -127, 127));
    I outside = (steps < -127.5f) | (steps > 127.5f);
    *by_log_scale += gradient * lane_choose(outside, code, code - steps);
    return lane_choose(outside, lane_splat(0), gradient * unit);
}

static void fake_weights_backward(const float *weights, float *gradient, size_t rows, size_t n, size_t stride,
                                  const float *units, float *by_log_scale) {
    for (size_t r = 0; r < rows; r++, weights += stride, gradient += stride) {
        size_t i = 0;
        for (; i + LANE_F <= n; i += LANE_F) {
            F sum = lane_f32(by_log_scale + i, LANE_F), unit = lane_f32(units + i, LANE_F);
            F g = lane_weight_slope(lane_f32(weights + i, LANE_F), lane_f32(gradient + i, LANE_F), unit, &sum);
            lane_store_f32(gradient + i, g, LANE_F);
            lane_store_f32(by_log_scale + i, sum, LANE_F);
        }
        if (i < n) {
            F sum = lane_f32(by_log_scale + i, n - i), unit = lane_f32(units + i, n - i);
            F g = lane_weight_slope(lane_f32(weights + i, n - i), lane_f32(gradient + i, n - i), unit, &sum);
            lane_store_f32(gradient + i, g, n - i);
            lane_store_f32(by_log_scale + i, sum, n - i);
        }
    }
}

static AI F lane_peak(F weight, F peak) {
    F magnitude = lane_abs(weight);
    return lane_choose(magnitude > peak, magnitude, peak);
}

static void column_peaks(const float *weights, size_t rows, size_t n, size_t stride, float *peaks) {
    for (size_t r = 0; r < rows; r++, weights += stride) {
        size_t i = 0;
        for (; i + LANE_F <= n; i += LANE_F)
            lane_store_f32(peaks + i, lane_peak(lane_f32(weights + i, LANE_F), lane_f32(peaks + i, LANE_F)), LANE_F);
        if (i < n)
            lane_store_f32(peaks + i, lane_peak(lane_f32(weights + i, n - i), lane_f32(peaks + i, n - i)), n - i);
    }
}

/* Kinds of results of scaled sums. STEPS have a bias too. */
enum { SCALED, BIASED, STEPS };

/* Parameters: `kind` is a compile-time constant. n is at most LANE_F. SCALED does not read `bias`. */
static AI F lane_scale(const float *sums, const float *factor, const float *bias, size_t n, int kind) {
    F y = lane_f32(sums, n) * lane_f32(factor, n);
    if (kind != SCALED) y = y + lane_f32(bias, n);
    return kind == STEPS ? lane_code(y, y) : y;
}

static AI void scale_all(const float *sums, size_t rows, size_t n, const float *factor, const float *bias, float *out,
                         int kind) {
    for (size_t r = 0; r < rows; r++, sums += n, out += n) {
        size_t i = 0;
        for (; i + LANE_F <= n; i += LANE_F)
            lane_store_f32(out + i, lane_scale(sums + i, factor + i, bias + i, LANE_F, kind), LANE_F);
        if (i < n) lane_store_f32(out + i, lane_scale(sums + i, factor + i, bias + i, n - i, kind), n - i);
    }
}

static void scale_columns(const float *sums, size_t rows, size_t n, const float *factor, const float *bias,
                          float *out) {
    if (bias)
        scale_all(sums, rows, n, factor, bias, out, BIASED);
    else
        scale_all(sums, rows, n, factor, factor, out, SCALED);
}

static void scale_to_steps(const float *sums, size_t rows, size_t n, const float *factor, const float *bias,
                           float *out) {
    scale_all(sums, rows, n, factor, bias, out, STEPS);
}

/* Finite values times 0 sum to 0; infinity and NaN make the sum NaN. */
static int unscale(float *values, size_t n, float factor) {
    F by = lane_splat(factor), not_finite = {0};
    size_t i = 0;
    for (; i + LANE_F <= n; i += LANE_F) {
        F value = lane_f32(values + i, LANE_F) * by;
        not_finite += value * 0.0f;
        lane_store_f32(values + i, value, LANE_F);
    }
    if (i < n) {
        F value = lane_f32(values + i, n - i) * by;
        not_finite += value * 0.0f;
        lane_store_f32(values + i, value, n - i);
    }
    return lane_sum(not_finite) == 0;
}

static AI F adagrad_lanes(F w, F *sum, F g, const sl_step *step) {
    g = lane_fma(lane_splat(step->l2), w, g);
    *sum = lane_fma(g, g, *sum);
    return w - step->rate * g / (lane_sqrt(*sum) + step->epsilon);
}

static void adagrad(float *weights, float *sum, const float *gradient, size_t n, const sl_step *step) {
    size_t i = 0;
    for (; i + LANE_F <= n; i += LANE_F) {
        F s = lane_f32(sum + i, LANE_F);
        lane_store_f32(weights + i,
                       adagrad_lanes(lane_f32(weights + i, LANE_F), &s, lane_f32(gradient + i, LANE_F), step), LANE_F);
        lane_store_f32(sum + i, s, LANE_F);
    }
    if (i < n) {
        F s = lane_f32(sum + i, n - i);
        F w = adagrad_lanes(lane_f32(weights + i, n - i), &s, lane_f32(gradient + i, n - i), step);
        lane_store_f32(weights + i, w, n - i);
        lane_store_f32(sum + i, s, n - i);
    }
}

static AI F adam_lanes(F w, F *first, F *second, F g, const sl_step *step) {
    g = lane_fma(lane_splat(step->l2), w, g);
    *first = lane_fma(lane_splat(1.0f - step->beta1), g - *first, *first);
    *second = lane_fma(lane_splat(1.0f - step->beta2), g * g - *second, *second);
    float rate = step->rate * step->correct1;
    return w - rate * *first / (lane_sqrt(*second * step->correct2) + step->epsilon);
}

static void adam(float *weights, float *first, float *second, const float *gradient, size_t n, const sl_step *step) {
    size_t i = 0;
    for (; i + LANE_F <= n; i += LANE_F) {
        F m = lane_f32(first + i, LANE_F), v = lane_f32(second + i, LANE_F);
        lane_store_f32(weights + i,
                       adam_lanes(lane_f32(weights + i, LANE_F), &m, &v, lane_f32(gradient + i, LANE_F), step), LANE_F);
        lane_store_f32(first + i, m, LANE_F);
        lane_store_f32(second + i, v, LANE_F);
    }
    if (i < n) {
        F m = lane_f32(first + i, n - i), v = lane_f32(second + i, n - i);
        F w = adam_lanes(lane_f32(weights + i, n - i), &m, &v, lane_f32(gradient + i, n - i), step);
        lane_store_f32(weights + i, w, n - i);
        lane_store_f32(first + i, m, n - i);
        lane_store_f32(second + i, v, n - i);
    }
}

const sl_loops LOOP_TABLE = {
    .name = LOOP_NAME,
    .join = join,
    .add = add,
    .add_scaled = add_scaled,
    .dot = dot,
    .activate = activate,
    .sigmoid = sigmoid,
    .backward = backward,
    .dropout = dropout,
    .narrow = narrow,
    .round = round_to_half,
    .unscale = unscale,
    .fake = fake,
    .fake_backward = fake_backward,
    .fake_weights = fake_weights,
    .fake_weights_backward = fake_weights_backward,
    .peaks = column_peaks,
    .scale = scale_columns,
    .scale_to_steps = scale_to_steps,
    .product = product,
    .decode8 = decode8,
    .decode4 = decode4,
    .adagrad = adagrad,
    .adam = adam,
};

#endif
