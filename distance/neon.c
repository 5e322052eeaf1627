/*
 * NEON with the dot product instructions of Armv8.2, as Neoverse N1, Graviton 2 and their successors have them.
 *
 * Why no sum overflows, for any values and any dim up to 65536: a 32-bit lane takes 4 products of a register of 16
 * bytes, of at most 255 * 255 each. A8 therefore stays below 4 * 65025 * 4096 < 2^30. 16-bit products are at most 2^30,
 * unsigned ones at most 2^32 - 2^17 + 1. Each fits 32 bits, and they are added up in 64.
 */
#include "distance/lanes.h"

#include <arm_neon.h>

#define LANE_ISA      SL_ISA_NEON
#define LANE_TABLE    sl_kernels_neon
#define LANE_8        16u
#define LANE_16       8u
#define LANE_F        4u
#define LANE_ROWS     8u
#define LANE_ROWS_I16 8u

typedef uint8x16_t V;
typedef int8x16_t Q8;
typedef int32x4_t R8;
typedef uint32x4_t A8; /* two's complement if the products are signed */
typedef int64x2_t A16;
typedef float32x4_t F;

static AI V lane_load(const void *from, size_t bytes) {
    if (bytes == LANE_8) return vld1q_u8(from);
    uint8_t whole[LANE_8] = {0};
    memcpy(whole, from, bytes);
    return vld1q_u8(whole);
}

static AI F lane_f32(const void *from, size_t n) {
    return vreinterpretq_f32_u8(lane_load(from, 4 * n));
}

static AI uint16x4_t load_half(const void *from, size_t n) {
    uint16_t whole[LANE_F] = {0};
    memcpy(whole, from, 2 * n);
    return vld1_u16(whole);
}

static AI F lane_i16(const void *from, size_t n) {
    return vcvtq_f32_s32(vmovl_s16(vreinterpret_s16_u16(load_half(from, n))));
}

static AI int8x16_t flip8(V a) {
    return vreinterpretq_s8_u8(veorq_u8(a, vdupq_n_u8(0x80)));
}

static AI Q8 lane_query8(V query) {
    return vreinterpretq_s8_u8(query);
}

static AI V lane_low4(V a) {
    return vandq_u8(a, vdupq_n_u8(15));
}

static AI V lane_high4(V a) {
    return vshrq_n_u8(a, 4);
}

static AI R8 lane_row4(R8 sum, V nibbles, V query) {
    return vdotq_s32(sum, vreinterpretq_s8_u8(nibbles), vreinterpretq_s8_u8(query));
}

/* The instruction takes two signed operands, so the row is shifted by 128; see lane_offset. */
static AI R8 lane_row8(R8 sum, V row, Q8 query) {
    return vdotq_s32(sum, flip8(row), query);
}

static AI int32_t lane_offset(const sl_query_code *query, size_t width) {
    int32x4_t sum = vdupq_n_s32(0);
    for (size_t k = 0; k < width; k += LANE_8)
        sum = vdotq_s32(sum, vdupq_n_s8(1), lane_query8(lane_load((const uint8_t *)query->code + k, LANE_8)));
    return (int32_t)(query->offset - 128 * (int64_t)vaddvq_s32(sum));
}

static AI i4 lane_sum4_i32(R8 a, R8 b, R8 c, R8 d) {
    return (i4)vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
}

static AI f4 lane_sum4_f32(F a, F b, F c, F d) {
    return (f4)vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d));
}

static AI A8 lane_dot_i8(A8 sum, V a, V b) {
    int32x4_t signed_sum = vreinterpretq_s32_u32(sum);
    return vreinterpretq_u32_s32(vdotq_s32(signed_sum, vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b)));
}

static AI A8 lane_dot_u8(A8 sum, V a, V b) {
    return vdotq_u32(sum, a, b);
}

/* The sum is below 2^30 in magnitude, so a sum of unsigned products reads the same as a signed one. */
static AI int64_t lane_total8(A8 sum) {
    return vaddlvq_s32(vreinterpretq_s32_u32(sum));
}

static AI V lane_diff_i8(V a, V b) {
    return vreinterpretq_u8_s8(vabdq_s8(vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b)));
}

static AI V lane_diff_u8(V a, V b) {
    return vabdq_u8(a, b);
}

static AI A16 lane_dot_i16(A16 sum, V a, V b) {
    int16x8_t x = vreinterpretq_s16_u8(a), y = vreinterpretq_s16_u8(b);
    sum = vpadalq_s32(sum, vmull_s16(vget_low_s16(x), vget_low_s16(y)));
    return vpadalq_s32(sum, vmull_high_s16(x, y));
}

static AI A16 lane_square_u16(A16 sum, V a) {
    uint16x8_t x = vreinterpretq_u16_u8(a);
    uint64x2_t squares = vreinterpretq_u64_s64(sum);
    squares = vpadalq_u32(squares, vmull_u16(vget_low_u16(x), vget_low_u16(x)));
    return vreinterpretq_s64_u64(vpadalq_u32(squares, vmull_high_u16(x, x)));
}

static AI V lane_diff_i16(V a, V b) {
    return vreinterpretq_u8_s16(vabdq_s16(vreinterpretq_s16_u8(a), vreinterpretq_s16_u8(b)));
}

static AI int64_t lane_total16(A16 sum, size_t steps) {
    (void)steps;
    return vaddvq_s64(sum);
}

static AI int64_t lane_total_squares(A16 sum, size_t steps) {
    (void)steps;
    return vaddvq_s64(sum);
}

static AI F lane_fma(F a, F b, F c) {
    return vfmaq_f32(c, a, b);
}

static AI F lane_splat(float value) {
    return vdupq_n_f32(value);
}

static AI float lane_sum_f32(F a) {
    return vaddvq_f32(a);
}

#define LANE_TILE 4u

static AI V lane_four(const void *from) {
    uint32_t four;
    memcpy(&four, from, sizeof four);
    return vreinterpretq_u8_u32(vdupq_n_u32(four));
}

static AI F lane_totals(R8 sum, int times, int32_t less) {
    int32x4_t total = times == 2 ? vaddq_s32(sum, sum) : sum;
    return vcvtq_f32_s32(vsubq_s32(total, vdupq_n_s32(less)));
}

static AI uint32_t lane_above(F a, F b) {
    const uint32x4_t bits = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(vcgtq_f32(a, b), bits));
}

#include "distance/body.h"
