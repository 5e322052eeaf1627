/* The loops of int8.h. A tier's file defines INT8_TABLE, INT8_NAME, LANE_BITS and TILE_ROWS, and LANE_DPBUSD if the
 * tier has VNNI. It includes this file last.
 *
 *   TILE_ROWS    rows whose sums stay in registers together
 *   LANE_DPBUSD  sum += the four products of u8 and s8 bytes in each 32-bit lane
 *  */
#ifndef SL_RANKER_NET_INT8_BODY_H
#define SL_RANKER_NET_INT8_BODY_H

#include "ranker/net/int8.h"
#include "ranker/net/panel_lanes.h"

/* Bytes in a register. */
#define LANE_BYTES (LANE_BITS / 8u)

/* ---- Lanes ---- */

static AI I lane_i32(const void *from) {
    I value;
    memcpy(&value, from, sizeof value);
    return value;
}

static AI I lane_four(const uint8_t *from) {
    int32_t value;
    memcpy(&value, from, sizeof value);
    return (I){0} + value;
}

#ifdef LANE_DPBUSD

static AI I lane_dot4(I sum, I inputs, I weights) {
#if LANE_BITS == 512
    return (I)LANE_DPBUSD((__m512i)sum, (__m512i)inputs, (__m512i)weights);
#else
    return (I)LANE_DPBUSD((__m256i)sum, (__m256i)inputs, (__m256i)weights);
#endif
}

#elif LANE_BITS == 128

static AI I lane_dot4(I sum, I inputs, I weights) {
    const I low = {0xff, 0xff, 0xff, 0xff};
    for (int shift = 0; shift < 32; shift += 8)
        sum += ((inputs >> shift) & low) * ((weights << (24 - shift)) >> 24);
    return sum;
}

#else

/* Widens even and odd bytes to 16 bits, so that the sum of two products fits into 32 bits. */
static AI I lane_dot4(I sum, I inputs, I weights) {
#if LANE_BITS == 512
    typedef __m512i V;
#else
    typedef __m256i V;
#endif
    V x = (V)inputs, w = (V)weights;
    V even = M(madd_epi16)(M(srli_epi16)(M(slli_epi16)(x, 8), 8), M(srai_epi16)(M(slli_epi16)(w, 8), 8));
    V odd = M(madd_epi16)(M(srli_epi16)(x, 8), M(srai_epi16)(w, 8));
    return sum + (I)even + (I)odd;
}

#endif

static AI F lane_choose(I mask, F a, F b) {
    return (F)(((I)a & mask) | ((I)b & ~mask));
}

/* Rounds to nearest, ties to even, and clamps to 0..255. NaN gives 0. */
static AI I lane_code(F value) {
    const float round = 12582912.0f; /* 1.5 * 2^23: a sum with it has the whole number in its lowest bits */
    F cut = lane_choose(value > 0.0f, value, lane_splat(0));
    cut = lane_choose(cut < 255.0f, cut, lane_splat(255));
    return (I)(cut + round) & 0xff;
}

/* Stores n lanes of 0..255 as bytes. */
static AI void lane_store_u8(uint8_t *to, I codes, size_t n) {
    typedef uint8_t B __attribute__((vector_size(LANE_F)));
    B bytes = __builtin_convertvector(codes, B);
    memcpy(to, &bytes, n);
}

/* ---- Products ---- */

/* Stores one register of outputs of row r. `at` is the number of the first output. */
static AI void store_outputs(const sl_int8_product *p, size_t r, size_t at, I sum) {
    size_t left = p->weights->out - at, n = left < LANE_F ? left : LANE_F;
    F factor = lane_f32(p->factor + at, LANE_F), bias = lane_f32(p->bias + at, LANE_F), y;
    I zero_sums = lane_i32(p->zero_sums + at);
    if (p->row_ranges) {
        zero_sums = zero_sums * p->row_ranges[r].zero;
        factor = factor * p->row_ranges[r].scale;
    }
    y = __builtin_convertvector(sum - zero_sums, F) * factor;
    y = y + bias;
    if (p->codes)
        lane_store_u8(p->codes + r * p->dst_pitch + at, lane_code(y), LANE_F);
    else if (n == LANE_F)
        lane_store_f32(p->floats + r * p->dst_pitch + at, y, LANE_F);
    else
        lane_store_f32(p->floats + r * p->dst_pitch + at, y, n);
}

/* Multiplies `rows` rows by `regs` registers of outputs. Both counts are compile-time constants. A group has
 * `group_bytes` bytes of weights. */
static AI void multiply_tile(const sl_int8_product *p, size_t first_row, const int8_t *weights, size_t group_bytes,
                             size_t at, const size_t rows, const size_t regs) {
    I sums[TILE_ROWS][TILE_REGS] = {{{0}}};
    const uint8_t *src = p->src + first_row * p->src_pitch;
    for (size_t g = 0; g < p->group_count; g++) {
        I w[TILE_REGS];
#pragma GCC unroll 8
        for (size_t v = 0; v < regs; v++)
            w[v] = lane_i32(weights + g * group_bytes + v * LANE_BYTES);
#pragma GCC unroll 8
        for (size_t r = 0; r < rows; r++) {
            I x = lane_four(src + r * p->src_pitch + g * SL_INT8_GROUP);
#pragma GCC unroll 8
            for (size_t v = 0; v < regs; v++)
                sums[r][v] = lane_dot4(sums[r][v], x, w[v]);
        }
    }
#pragma GCC unroll 8
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (size_t v = 0; v < regs; v++)
            if (at + v * LANE_F < p->weights->out) store_outputs(p, first_row + r, at + v * LANE_F, sums[r][v]);
}

/* Multiplies all rows by `regs` registers of outputs. */
static AI void multiply_rows(const sl_int8_product *p, const int8_t *weights, size_t group_bytes, size_t at,
                             const size_t regs) {
    size_t r = 0;
    for (; r + TILE_ROWS <= p->rows; r += TILE_ROWS)
        multiply_tile(p, r, weights, group_bytes, at, TILE_ROWS, regs);
    for (; r + 2 <= p->rows; r += 2)
        multiply_tile(p, r, weights, group_bytes, at, 2, regs);
    if (r < p->rows) multiply_tile(p, r, weights, group_bytes, at, 1, regs);
}

static void multiply(const sl_int8_product *p) {
    const sl_int8_weights *w = p->weights;
    const size_t groups = sl_int8_groups(w->in);
    const int8_t *codes = w->codes;
    for (size_t from = 0; from < w->out; from += SL_PANEL_BLOCK * SL_PANEL_BLOCKS) {
        size_t width = sl_panel_width(w->out, from), group_bytes = width * SL_INT8_GROUP, regs = width / LANE_F, v = 0;
        const int8_t *first = codes + p->first_group * group_bytes;
        for (; v + TILE_REGS <= regs; v += TILE_REGS)
            multiply_rows(p, first + v * LANE_BYTES, group_bytes, from + v * LANE_F, TILE_REGS);
        for (; v < regs; v += BLOCK_REGS)
            multiply_rows(p, first + v * LANE_BYTES, group_bytes, from + v * LANE_F, BLOCK_REGS);
        codes += groups * group_bytes;
    }
}

/* ---- Inputs ---- */

static void quantise(const float *values, size_t n, const sl_int8_range *range, uint8_t *codes) {
    const F unit = lane_splat(1 / range->scale), zero = lane_splat((float)range->zero);
    size_t i = 0;
    for (; i + LANE_F <= n; i += LANE_F) {
        F value = lane_f32(values + i, LANE_F) * unit;
        lane_store_u8(codes + i, lane_code(value + zero), LANE_F);
    }
    if (i < n) {
        F value = lane_f32(values + i, n - i) * unit;
        lane_store_u8(codes + i, lane_code(value + zero), n - i);
    }
}

static void find_extent(const float *values, size_t n, float *low, float *high) {
    F least = lane_splat(0), largest = lane_splat(0);
    for (size_t i = 0; i < n; i += LANE_F) {
        F value = i + LANE_F <= n ? lane_f32(values + i, LANE_F) : lane_f32(values + i, n - i);
        least = lane_choose(value < least, value, least);
        largest = lane_choose(value > largest, value, largest);
    }
    *low = *high = 0;
    for (size_t i = 0; i < LANE_F; i++) {
        *low = least[i] < *low ? least[i] : *low;
        *high = largest[i] > *high ? largest[i] : *high;
    }
}

const sl_int8_loops INT8_TABLE = {.name = INT8_NAME, .product = multiply, .quantise = quantise, .extent = find_extent};

#endif
