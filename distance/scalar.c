/* The reference: one element at a time, in plain C. */
#include "distance/lanes.h"

#define LANE_ISA      SL_ISA_SCALAR
#define LANE_TABLE    sl_kernels_scalar
#define LANE_8        1u
#define LANE_16       1u
#define LANE_F        1u
#define LANE_ROWS     4u
#define LANE_ROWS_I16 4u
#define LANE_TILE     1u

typedef int64_t V;
typedef V Q8;
typedef int64_t R8;
typedef int64_t A8;
typedef int64_t A16;
typedef float F;

/* Loads the element's bits; the operations know its type. */
static AI V lane_load(const void *from, size_t bytes) {
    if (bytes == 1) return *(const uint8_t *)from;
    uint16_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static AI F lane_f32(const void *from, size_t n) {
    (void)n;
    return load_float(from);
}

static AI F lane_i16(const void *from, size_t n) {
    (void)n;
    return (float)(int16_t)lane_load(from, 2);
}

static AI Q8 lane_query8(V query) {
    return (int8_t)query;
}

static AI R8 lane_row8(R8 sum, V row, Q8 query) {
    return sum + row * query;
}

static AI V lane_low4(V a) {
    return a & 15;
}

static AI V lane_high4(V a) {
    return a >> 4;
}

static AI R8 lane_row4(R8 sum, V nibble, V query) {
    return sum + nibble * (int8_t)query;
}

static AI int32_t lane_offset(const sl_query_code *query, size_t width) {
    (void)width;
    return (int32_t)query->offset;
}

static AI F lane_totals(R8 sum, int times, int32_t less) {
    return (float)((int32_t)(times * sum) - less);
}

static AI uint32_t lane_above(F a, F b) {
    return a > b;
}

static AI i4 lane_sum4_i32(R8 a, R8 b, R8 c, R8 d) {
    return (i4){(int32_t)a, (int32_t)b, (int32_t)c, (int32_t)d};
}

static AI f4 lane_sum4_f32(F a, F b, F c, F d) {
    return (f4){a, b, c, d};
}

static AI A8 lane_dot_i8(A8 sum, V a, V b) {
    return sum + (int8_t)a * (int8_t)b;
}

static AI A8 lane_dot_u8(A8 sum, V a, V b) {
    return sum + a * b;
}

static AI A16 lane_dot_i16(A16 sum, V a, V b) {
    return sum + (int16_t)a * (int16_t)b;
}

static AI A16 lane_square_u16(A16 sum, V a) {
    return sum + a * a;
}

static AI V distance(V a, V b) {
    return a < b ? b - a : a - b;
}

static AI V lane_diff_i8(V a, V b) {
    return distance((int8_t)a, (int8_t)b);
}

static AI V lane_diff_u8(V a, V b) {
    return distance(a, b);
}

static AI V lane_diff_i16(V a, V b) {
    return distance((int16_t)a, (int16_t)b);
}

static AI int64_t lane_total8(A8 sum) {
    return sum;
}

static AI int64_t lane_total16(A16 sum, size_t steps) {
    (void)steps;
    return sum;
}

static AI int64_t lane_total_squares(A16 sum, size_t steps) {
    (void)steps;
    return sum;
}

static AI F lane_fma(F a, F b, F c) {
    return a * b + c;
}

static AI F lane_splat(float value) {
    return value;
}

static AI float lane_sum_f32(F a) {
    return a;
}

#include "distance/body.h"
