/* AVX2 and FMA. */
#define LOOP_TABLE sl_loops_avx2
#define LOOP_NAME  "avx2"
#define LOOP_LANES 8u

#include "ranker/loops_lanes.h"

#include <immintrin.h>

static AI __m256i first_lanes(size_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static AI V load_part(const float *from, size_t n) {
    return (V)_mm256_maskload_ps(from, first_lanes(n));
}

static AI void store_part(float *to, V value, size_t n) {
    _mm256_maskstore_ps(to, first_lanes(n), (__m256)value);
}

static AI V lane_fma(V a, V b, V c) {
    return (V)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

static AI V lane_sqrt(V a) {
    return (V)_mm256_sqrt_ps((__m256)a);
}

#include "ranker/loops_body.h"
