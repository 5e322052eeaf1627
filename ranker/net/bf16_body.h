/* The loops of bf16.h. A tier's file defines BF16_TABLE, BF16_NAME, LANE_BITS and TILE_ROWS, and LANE_DPBF16 if the
 * tier has that instruction. It includes this file last.
 *
 *   TILE_ROWS    rows whose sums stay in registers together, an even number
 *   LANE_DPBF16  sum += the two products of bf16 numbers in each 32-bit lane
 *  */
#ifndef SL_RANKER_NET_BF16_BODY_H
#define SL_RANKER_NET_BF16_BODY_H

#include "ranker/net/bf16.h"
#include "ranker/net/bf16_lanes.h"
#include "ranker/net/panel_lanes.h"

/* bf16 numbers in a register. */
#define LANE_NUMBERS (LANE_BITS / 16u)
/* Registers of outputs for a single row: enough chains of sums to hide the instruction's latency. */
#if LANE_BITS == 256
#define ROW_REGS (BLOCK_REGS * SL_PANEL_BLOCKS)
#else
#define ROW_REGS TILE_REGS
#endif

/* ---- Lanes ---- */

static AI U lane_u32(const void *from) {
    U value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Loads one pair of inputs into every lane. */
static AI U lane_pair(const uint16_t *from) {
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return (U){0} + value;
}

#ifdef LANE_DPBF16

/* One step multiplies both numbers of a lane. */
#define STEPS 1u
typedef U W;

static AI W lane_step(U pairs, size_t step) {
    (void)step;
    return pairs;
}

static AI F lane_multiply(F sum, W inputs, W weights) {
    return LANE_DPBF16(sum, (__m512bh)inputs, (__m512bh)weights);
}

/* Stores max(lane, 0) as bf16. NaN stays NaN. */
static AI void lane_store_relu(uint16_t *to, F value) {
    __m256bh half = _mm512_cvtneps_pbh(_mm512_max_ps(lane_splat(0), value));
    memcpy(to, &half, sizeof half);
}

#else

/* The first step multiplies the even number of a lane as a float, the second the odd one. Few registers hold numbers
 * this way, and many hold sums. */
#define STEPS 2u
typedef F W;

static AI W lane_step(U pairs, size_t step) {
    return (F)(step ? pairs & 0xffff0000u : pairs << 16);
}

static AI F lane_multiply(F sum, W inputs, W weights) {
    return lane_fma(inputs, weights, sum);
}

static AI void lane_store_relu(uint16_t *to, F value) {
    H half = __builtin_convertvector(bf16_lanes((F)((U)value & ~(U)(value < 0.0f))) >> 16, H);
    memcpy(to, &half, sizeof half);
}

#endif

/* ---- Products ---- */

/* Stores one register of outputs of row r. `at` is the number of the first output. */
static AI void store_outputs(const sl_bf16_product *p, size_t r, size_t at, F sum) {
    size_t left = p->weights->out - at, n = left < LANE_F ? left : LANE_F;
    F y = sum + lane_f32(p->bias + at, LANE_F);
    if (p->numbers)
        lane_store_relu(p->numbers + r * p->dst_pitch + at, y);
    else if (n == LANE_F)
        lane_store_f32(p->floats + r * p->dst_pitch + at, y, LANE_F);
    else
        lane_store_f32(p->floats + r * p->dst_pitch + at, y, n);
}

/* Multiplies `rows` rows by `regs` registers of outputs. Both counts are compile-time constants. A group has `pitch`
 * weights. */
static AI void multiply_tile(const sl_bf16_product *p, size_t first_row, const uint16_t *weights, size_t pitch,
                             size_t at, const size_t rows, const size_t regs) {
    F sums[TILE_ROWS][ROW_REGS] = {{{0}}};
    const uint16_t *src = p->src + first_row * p->src_pitch;
    for (size_t g = 0; g < p->group_count; g++) {
#pragma GCC unroll 2
        for (size_t step = 0; step < STEPS; step++) {
            W w[ROW_REGS];
#pragma GCC unroll 8
            for (size_t v = 0; v < regs; v++)
                w[v] = lane_step(lane_u32(weights + g * pitch + v * LANE_NUMBERS), step);
#pragma GCC unroll 8
            for (size_t r = 0; r < rows; r++) {
                W x = lane_step(lane_pair(src + r * p->src_pitch + g * SL_BF16_GROUP), step);
#pragma GCC unroll 8
                for (size_t v = 0; v < regs; v++)
                    sums[r][v] = lane_multiply(sums[r][v], x, w[v]);
            }
        }
    }
#pragma GCC unroll 8
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (size_t v = 0; v < regs; v++)
            if (at + v * LANE_F < p->weights->out) store_outputs(p, first_row + r, at + v * LANE_F, sums[r][v]);
}

/* Multiplies all rows, except the last of an odd number, by `regs` registers of outputs. */
static AI void multiply_rows(const sl_bf16_product *p, const uint16_t *weights, size_t pitch, size_t at,
                             const size_t regs) {
    size_t r = 0;
    for (; r + TILE_ROWS <= p->rows; r += TILE_ROWS)
        multiply_tile(p, r, weights, pitch, at, TILE_ROWS, regs);
    for (; r + 2 <= p->rows; r += 2)
        multiply_tile(p, r, weights, pitch, at, 2, regs);
}

/* Computes the outputs of one panel, which begins at output `from`. */
static AI void multiply_panel(const sl_bf16_product *p, const uint16_t *weights, size_t pitch, size_t from,
                              size_t regs) {
    size_t v = 0, last = p->rows - 1;
    for (; v + TILE_REGS <= regs; v += TILE_REGS)
        multiply_rows(p, weights + v * LANE_NUMBERS, pitch, from + v * LANE_F, TILE_REGS);
    for (; v < regs; v += BLOCK_REGS)
        multiply_rows(p, weights + v * LANE_NUMBERS, pitch, from + v * LANE_F, BLOCK_REGS);
    if (p->rows % 2 == 0) return;
    for (v = 0; v + ROW_REGS <= regs; v += ROW_REGS)
        multiply_tile(p, last, weights + v * LANE_NUMBERS, pitch, from + v * LANE_F, 1, ROW_REGS);
    for (; v < regs; v += BLOCK_REGS)
        multiply_tile(p, last, weights + v * LANE_NUMBERS, pitch, from + v * LANE_F, 1, BLOCK_REGS);
}

static void multiply(const sl_bf16_product *p) {
    const sl_bf16_weights *w = p->weights;
    const size_t groups = sl_bf16_groups(w->in);
    const uint16_t *numbers = w->numbers;
    for (size_t from = 0; from < w->out; from += SL_PANEL_BLOCK * SL_PANEL_BLOCKS) {
        size_t width = sl_panel_width(w->out, from), pitch = width * SL_BF16_GROUP;
        multiply_panel(p, numbers + p->first_group * pitch, pitch, from, width / LANE_F);
        numbers += groups * pitch;
    }
}

const sl_bf16_loops BF16_TABLE = {.name = BF16_NAME, .product = multiply};

#endif
