/*
 * Lanes of floats, which the kernels of distance/ and the loops of ranker/ share. A file of an ISA tier defines
 * LANE_BITS and includes this header.
 *
 *   LANE_BITS                  512: AVX-512 F, BW, VL and DQ; 256: AVX2 and FMA; 128: any machine, nothing fused
 *   LANE_F                     floats of a register
 *   F, I                       a register of floats, of 32-bit integers: vectors of the compiler, which take operators
 *   lane_f32(p, n)             n floats, the other lanes zero; nothing behind the n floats is touched
 *   lane_bf16(p, n)            n bf16 numbers as floats, exactly; likewise
 *   lane_i8(p, n)              n signed bytes as floats; likewise
 *   lane_store_f32(p, a, n)    stores n lanes
 *   lane_u8(p), lane_u4(p)     LANE_F codes of 8 or 4 bits as floats. lane_u8 reads LANE_F bytes, lane_u4 half as many.
 *                              A code of 4 bits with an even number is the lower half of its byte.
 *   lane_splat(value)          the value in each lane
 *   lane_fma(a, b, c)          a * b + c, rounded once except in 128 bits
 *   lane_sqrt(a)
 *
 * An n of LANE_F is a constant, so that a whole register needs no mask.
 */
#ifndef SL_DISTANCE_FLOAT_LANES_H
#define SL_DISTANCE_FLOAT_LANES_H

#include "base/inline.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LANE_F (LANE_BITS / 32u)

typedef int32_t I __attribute__((vector_size(LANE_BITS / 8)));

#if LANE_BITS == 128

typedef float F __attribute__((vector_size(LANE_BITS / 8)));

static AI F lane_f32(const void *from, size_t n) {
    F value = {0};
    memcpy(&value, from, n * sizeof(float));
    return value;
}

static AI F lane_bf16(const void *from, size_t n) {
    uint16_t upper[LANE_F] = {0};
    memcpy(upper, from, n * sizeof *upper);
    I bits = {upper[0], upper[1], upper[2], upper[3]};
    return (F)(bits << 16);
}

static AI F lane_i8(const void *from, size_t n) {
    int8_t bytes[LANE_F] = {0};
    memcpy(bytes, from, n);
    return (F){bytes[0], bytes[1], bytes[2], bytes[3]};
}

static AI void lane_store_f32(float *to, F value, size_t n) {
    memcpy(to, &value, n * sizeof *to);
}

static AI F lane_u8(const uint8_t *from) {
    return __builtin_convertvector(((I){from[0], from[1], from[2], from[3]}), F);
}

static AI F lane_u4(const uint8_t *from) {
    return __builtin_convertvector(((I){from[0] & 15, from[0] >> 4, from[1] & 15, from[1] >> 4}), F);
}

static AI F lane_splat(float value) {
    return (F){value, value, value, value};
}

static AI F lane_fma(F a, F b, F c) {
    return a * b + c;
}

static AI F lane_sqrt(F a) {
    return (F){sqrtf(a[0]), sqrtf(a[1]), sqrtf(a[2]), sqrtf(a[3])};
}

#else

#include <immintrin.h>

#define IS_WHOLE(n) (__builtin_constant_p(n) && (n) == LANE_F)

#if LANE_BITS == 512

#define M(op) _mm512_##op
typedef __m512 F;

static AI F lane_f32(const void *from, size_t n) {
    if (IS_WHOLE(n)) return _mm512_loadu_ps(from);
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), from);
}

static AI F lane_bf16(const void *from, size_t n) {
    __m256i upper = IS_WHOLE(n) ? _mm256_loadu_si256(from) : _mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), from);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(upper), 16));
}

static AI F lane_i8(const void *from, size_t n) {
    __m128i bytes = IS_WHOLE(n) ? _mm_loadu_si128(from) : _mm_maskz_loadu_epi8((__mmask16)((1u << n) - 1), from);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}

static AI void lane_store_f32(float *to, F value, size_t n) {
    if (IS_WHOLE(n))
        _mm512_storeu_ps(to, value);
    else
        _mm512_mask_storeu_ps(to, (__mmask16)((1u << n) - 1), value);
}

static AI F lane_u8(const uint8_t *from) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)from)));
}

static AI F lane_u4(const uint8_t *from) {
    __m128i pairs = _mm_loadl_epi64((const void *)from), half = _mm_set1_epi8(15);
    __m128i codes = _mm_unpacklo_epi8(_mm_and_si128(pairs, half), _mm_and_si128(_mm_srli_epi16(pairs, 4), half));
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(codes));
}

#else

#define M(op) _mm256_##op
typedef __m256 F;

static AI __m256i first_lanes(size_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static AI F lane_f32(const void *from, size_t n) {
    return IS_WHOLE(n) ? _mm256_loadu_ps(from) : _mm256_maskload_ps(from, first_lanes(n));
}

/* Loads n elements of `size` bytes, half a register at most. The others are zero. */
static AI __m128i lane_half(const void *from, size_t n, size_t size) {
    uint8_t whole[sizeof(__m128i)] = {0};
    memcpy(whole, from, n * size);
    return _mm_loadu_si128((const __m128i *)whole);
}

static AI F lane_bf16(const void *from, size_t n) {
    __m128i upper = IS_WHOLE(n) ? _mm_loadu_si128(from) : lane_half(from, n, sizeof(uint16_t));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(upper), 16));
}

static AI F lane_i8(const void *from, size_t n) {
    __m128i bytes = IS_WHOLE(n) ? _mm_loadl_epi64(from) : lane_half(from, n, sizeof(int8_t));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}

static AI void lane_store_f32(float *to, F value, size_t n) {
    if (IS_WHOLE(n))
        _mm256_storeu_ps(to, value);
    else
        _mm256_maskstore_ps(to, first_lanes(n), value);
}

static AI F lane_u8(const uint8_t *from) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)from)));
}

static AI F lane_u4(const uint8_t *from) {
    int32_t word;
    memcpy(&word, from, sizeof word);
    __m128i pairs = _mm_cvtsi32_si128(word), half = _mm_set1_epi8(15);
    __m128i codes = _mm_unpacklo_epi8(_mm_and_si128(pairs, half), _mm_and_si128(_mm_srli_epi16(pairs, 4), half));
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(codes));
}

#endif

static AI F lane_splat(float value) {
    return M(set1_ps)(value);
}

static AI F lane_fma(F a, F b, F c) {
    return M(fmadd_ps)(a, b, c);
}

static AI F lane_sqrt(F a) {
    return M(sqrt_ps)(a);
}

#endif

#endif
