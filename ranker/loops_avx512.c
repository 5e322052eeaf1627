/* AVX-512 F, BW, VL and DQ. */
#define LOOP_TABLE sl_loops_avx512
#define LOOP_NAME  "avx512"
#define LOOP_LANES 16u

#include "ranker/loops_lanes.h"

#include <immintrin.h>

static AI __mmask16 first_lanes(size_t n) {
    return (__mmask16)((1u << n) - 1);
}

static AI V load_part(const float *from, size_t n) {
    return (V)_mm512_maskz_loadu_ps(first_lanes(n), from);
}

static AI void store_part(float *to, V value, size_t n) {
    _mm512_mask_storeu_ps(to, first_lanes(n), (__m512)value);
}

static AI V lane_fma(V a, V b, V c) {
    return (V)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

static AI V lane_sqrt(V a) {
    return (V)_mm512_sqrt_ps((__m512)a);
}

#include "ranker/loops_body.h"
