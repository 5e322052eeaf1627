/*
 * The lane operations of the x86 tiers, once for 256-bit and 512-bit registers. A tier's file defines
 *
 *   LANE_BITS                  256 or 512
 *   LANE_DPBUSD, LANE_DPWSSD   the VNNI instructions, if the tier has them
 *
 * Why no sum overflows, for any values and any dim up to 65536:
 *
 *   lane_row8    A whole row's sum is at most 255 * 128 * 65536 < 2^31. 32-bit lanes may therefore be added to one
 *                another too. Without VNNI, bytes are widened first: vpmaddubsw saturates at 16 bits.
 *   lane_row4    A row's sum is at most 15 * 128 * 65536 < 2^27. A pair of products of vpmaddubsw is at most
 *                2 * 15 * 128, and a run of 8 pairs is less than 2^15.
 *   A8           A lane takes 4 products a register, of at most 255 * 255, and a register every 32 bytes at least:
 *                4 * 65025 * 2048 < 2^30. Lanes are added in 64 bits.
 *   A16          A pair of products lies in [-2 * 32768 * 32767, 2^31], and 32 signed bits do not hold 2^31. The pair
 *                plus 2^31 - 1 lies in [65535, 2^32 - 1]: an unsigned 32-bit number, even if the sum wrapped on the
 *                way. These numbers are added up in 64 bits. `odd` takes the upper one of each 64, and `all` takes
 *                both as they stand together, modulo 2^64. The sum of the lower ones is all - (odd << 32). The
 *                2^31 - 1 of each step is subtracted at the end.
 *   squares      u is in [0, 65535]. With v = u - 32768, u^2 = v^2 + 65536 v + 2^30, and v is a signed 16-bit number.
 *                `linear` sums v in 32 bits: at most 2 * 32768 a register and lane, 4096 registers: 2^28.
 */
#ifndef SL_DISTANCE_X86_H
#define SL_DISTANCE_X86_H

#include "distance/float_lanes.h"
#include "distance/lanes.h"

#include <immintrin.h>

#define LANE_8  (LANE_BITS / 8u)
#define LANE_16 (LANE_BITS / 16u)

#if LANE_BITS == 512
typedef __m512i V;
#define BITS(op)      _mm512_##op##_si512
#define LOW_HALF(v)   _mm512_castsi512_si256(v)
#define BITS_STORE    _mm512_storeu_si512
#define HIGH_HALF(v)  _mm512_extracti64x4_epi64(v, 1)
#define LANE_ROWS     8u
#define LANE_ROWS_I16 8u
#else
typedef __m256i V;
#define BITS(op)          _mm256_##op##_si256
#define LOW_HALF(v)       _mm256_castsi256_si128(v)
#define BITS_STORE(to, v) _mm256_storeu_si256((__m256i *)(to), v)
#define HIGH_HALF(v)      _mm256_extracti128_si256(v, 1)
#define LANE_ROWS         8u
#define LANE_ROWS_I16     4u /* two sums each, in 16 registers */
#endif

/* Sums in 32-bit lanes have a type of their own. VNNI instructions name their element type, and gcc would copy a V
 * before and after each of them. */
typedef int32_t R8 __attribute__((vector_size(LANE_BITS / 8)));

typedef struct A8 {
    R8 sum, minus;
} A8;

typedef struct A16 {
    V all, odd;
    R8 linear;
} A16;

/* ---------------------------------------------------------------------------------------------------------------
 * Loads. n is a constant wherever a whole register is meant.
 * ------------------------------------------------------------------------------------------------------------- */

#if LANE_BITS == 512

static AI V lane_load(const void *from, size_t bytes) {
    if (bytes == LANE_8) return _mm512_loadu_si512(from);
    return _mm512_maskz_loadu_epi8(((__mmask64)1 << bytes) - 1, from);
}

/* Loads n 16-bit integers. */
static AI __m256i load_half(const void *from, size_t n) {
    if (n == LANE_F) return _mm256_loadu_si256((const __m256i *)from);
    return _mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), from);
}

#else

/* AVX2 has no masked load of bytes, so a part is copied to a whole register's worth of memory. */
static AI V lane_load(const void *from, size_t bytes) {
    if (bytes == LANE_8) return _mm256_loadu_si256((const __m256i *)from);
    uint8_t whole[LANE_8] = {0};
    memcpy(whole, from, bytes);
    return _mm256_loadu_si256((const __m256i *)whole);
}

static AI __m128i load_half(const void *from, size_t n) {
    if (n == LANE_F) return _mm_loadu_si128((const __m128i *)from);
    uint8_t whole[2 * LANE_F] = {0};
    memcpy(whole, from, 2 * n);
    return _mm_loadu_si128((const __m128i *)whole);
}

#endif

static AI F lane_i16(const void *from, size_t n) {
    return M(cvtepi32_ps)(M(cvtepi16_epi32)(load_half(from, n)));
}

/* ---------------------------------------------------------------------------------------------------------------
 * Adding lanes to one another
 * ------------------------------------------------------------------------------------------------------------- */

/* Returns, for each 128 bits of a and b: a0 + a2, b0 + b2, a1 + a3, b1 + b3. */
static AI V merge32(V a, V b) {
    return M(add_epi32)(M(unpacklo_epi32)(a, b), M(unpackhi_epi32)(a, b));
}

static AI V merge64(V a, V b) {
    return M(add_epi32)(M(unpacklo_epi64)(a, b), M(unpackhi_epi64)(a, b));
}

static AI F merge32f(F a, F b) {
    return M(add_ps)(M(unpacklo_ps)(a, b), M(unpackhi_ps)(a, b));
}

/* Returns the four totals. The transposition that brings them side by side also adds. */
static AI i4 lane_sum4_i32(R8 a, R8 b, R8 c, R8 d) {
    V four = merge64(merge32((V)a, (V)b), merge32((V)c, (V)d));
#if LANE_BITS == 512
    __m256i two = _mm256_add_epi32(LOW_HALF(four), HIGH_HALF(four));
#else
    __m256i two = four;
#endif
    return (i4)_mm_add_epi32(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
}

static AI f4 lane_sum4_f32(F a, F b, F c, F d) {
    F ab = merge32f(a, b), cd = merge32f(c, d);
#if LANE_BITS == 512
    __m512d low = _mm512_castps_pd(ab), high = _mm512_castps_pd(cd);
    F four =
        _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(low, high)), _mm512_castpd_ps(_mm512_unpackhi_pd(low, high)));
    __m256 two = _mm256_add_ps(_mm512_castps512_ps256(four), _mm512_extractf32x8_ps(four, 1));
#else
    __m256d low = _mm256_castps_pd(ab), high = _mm256_castps_pd(cd);
    __m256 two =
        _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(low, high)), _mm256_castpd_ps(_mm256_unpackhi_pd(low, high)));
#endif
    return (f4)_mm_add_ps(_mm256_castps256_ps128(two), _mm256_extractf128_ps(two, 1));
}

static AI float lane_sum_f32(F a) {
    f4 four = lane_sum4_f32(a, a, a, a);
    return four[0];
}

static AI int64_t sum_i64(V a) {
#if LANE_BITS == 512
    __m256i four = _mm256_add_epi64(LOW_HALF(a), HIGH_HALF(a));
#else
    __m256i four = a;
#endif
    __m128i two = _mm_add_epi64(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
    return _mm_cvtsi128_si64(_mm_add_epi64(two, _mm_unpackhi_epi64(two, two)));
}

static AI int64_t sum_i32(V a) {
    return sum_i64(M(add_epi64)(M(cvtepi32_epi64)(LOW_HALF(a)), M(cvtepi32_epi64)(HIGH_HALF(a))));
}

/* ---------------------------------------------------------------------------------------------------------------
 * 8-bit products
 * ------------------------------------------------------------------------------------------------------------- */

static AI V flip8(V a) {
    return BITS(xor)(a, M(set1_epi8)((char)0x80));
}

static AI V lane_low4(V a) {
    return BITS(and)(a, M(set1_epi8)(15));
}

static AI V lane_high4(V a) {
    return lane_low4(M(srli_epi16)(a, 4));
}

static AI int32_t lane_offset(const sl_query_code *query, size_t width) {
    (void)width;
    return (int32_t)query->offset;
}

#ifdef LANE_DPBUSD

static AI R8 madd_add(R8 sum, V a, V b) {
    return (R8)LANE_DPWSSD((V)sum, a, b);
}

static AI R8 mixed_add(R8 sum, V unsigned_bytes, V signed_bytes) {
    return (R8)LANE_DPBUSD((V)sum, unsigned_bytes, signed_bytes);
}

typedef V Q8;

static AI Q8 lane_query8(V query) {
    return query;
}

static AI R8 lane_row8(R8 sum, V row, Q8 query) {
    return mixed_add(sum, row, query);
}

static AI R8 lane_row4(R8 sum, V nibbles, V query) {
    return mixed_add(sum, nibbles, query);
}

/* The instruction takes one unsigned and one signed operand, so one operand is shifted by 128. `minus` sums what the
 * shift adds. */
static AI A8 lane_dot_i8(A8 sum, V a, V b) {
    sum.sum = mixed_add(sum.sum, flip8(a), b);
    sum.minus = mixed_add(sum.minus, M(set1_epi8)((char)0x80), b);
    return sum;
}

static AI A8 lane_dot_u8(A8 sum, V a, V b) {
    sum.sum = mixed_add(sum.sum, a, flip8(b));
    sum.minus = mixed_add(sum.minus, a, M(set1_epi8)((char)0x80));
    return sum;
}

#else

static AI R8 madd_add(R8 sum, V a, V b) {
    return (R8)M(add_epi32)((V)sum, M(madd_epi16)(a, b));
}

/* Bytes as 16-bit integers: bytes at even places, and bytes at odd places. */
typedef struct Q8 {
    V even, odd;
} Q8;

static AI Q8 widen_i8(V a) {
    return (Q8){M(srai_epi16)(M(slli_epi16)(a, 8), 8), M(srai_epi16)(a, 8)};
}

static AI Q8 widen_u8(V a) {
    return (Q8){BITS(and)(a, M(set1_epi16)(0xff)), M(srli_epi16)(a, 8)};
}

static AI R8 dot_wide(R8 sum, Q8 a, Q8 b) {
    return madd_add(madd_add(sum, a.even, b.even), a.odd, b.odd);
}

static AI Q8 lane_query8(V query) {
    return widen_i8(query);
}

static AI R8 lane_row8(R8 sum, V row, Q8 query) {
    return dot_wide(sum, widen_u8(row), query);
}

/* 16 bits hold the sum of this many pairs of products. */
#define LANE_RUN4 8u
typedef int16_t R4 __attribute__((vector_size(LANE_BITS / 8))); /* a type of its own, as R8 */

static AI R4 lane_begin4(R8 sum) {
    (void)sum;
    return (R4){0};
}

static AI R4 lane_row4(R4 sum, V nibbles, V query) {
    return sum + (R4)M(maddubs_epi16)(nibbles, query);
}

static AI R8 lane_end4(R8 sum, R4 run) {
    return madd_add(sum, (V)run, M(set1_epi16)(1));
}

static AI A8 lane_dot_i8(A8 sum, V a, V b) {
    sum.sum = dot_wide(sum.sum, widen_i8(a), widen_i8(b));
    return sum;
}

static AI A8 lane_dot_u8(A8 sum, V a, V b) {
    sum.sum = dot_wide(sum.sum, widen_u8(a), widen_u8(b));
    return sum;
}

#endif

static AI int64_t lane_total8(A8 sum) {
    return sum_i32(M(sub_epi32)((V)sum.sum, (V)sum.minus));
}

static AI V lane_diff_i8(V a, V b) {
    return M(sub_epi8)(M(max_epi8)(a, b), M(min_epi8)(a, b));
}

static AI V lane_diff_u8(V a, V b) {
    return M(sub_epi8)(M(max_epu8)(a, b), M(min_epu8)(a, b));
}

/* ---------------------------------------------------------------------------------------------------------------
 * Groups: as many rows at once as a register holds sums, with their totals side by side in one
 * ------------------------------------------------------------------------------------------------------------- */

#define LANE_GROUP

static AI V four_rows(const R8 *sums) {
    return merge64(merge32((V)sums[0], (V)sums[1]), merge32((V)sums[2], (V)sums[3]));
}

/* Loads two adjacent floats of each of two rows. */
static AI __m128 load_pairs2(const uint8_t *first, const uint8_t *second, size_t offset) {
    __m128 low = _mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)(first + offset)));
    return _mm_loadh_pi(low, (const __m64 *)(const void *)(second + offset));
}

#if LANE_BITS == 512

/* Returns the sum of each pair of 128-bit quarters of a and b, a's before b's. */
static AI V merge128(V a, V b) {
    return _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
}

static AI V lane_group_i32(const R8 *sums) {
    return merge128(merge128(four_rows(sums), four_rows(sums + 4)),
                    merge128(four_rows(sums + 8), four_rows(sums + 12)));
}

static AI F load_pairs8(const uint8_t *const *row, size_t offset) {
    F all = _mm512_setzero_ps();
    all = _mm512_insertf32x4(all, load_pairs2(row[0], row[1], offset), 0);
    all = _mm512_insertf32x4(all, load_pairs2(row[2], row[3], offset), 1);
    all = _mm512_insertf32x4(all, load_pairs2(row[4], row[5], offset), 2);
    return _mm512_insertf32x4(all, load_pairs2(row[6], row[7], offset), 3);
}

/* Loads the float at the offset of each row, and the float behind it. */
static AI void lane_load_pairs(const uint8_t *const *row, size_t offset, F *here, F *behind) {
    const V even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    F low = load_pairs8(row, offset), high = load_pairs8(row + 8, offset);
    *here = _mm512_permutex2var_ps(low, even, high);
    *behind = _mm512_permutex2var_ps(low, _mm512_add_epi32(even, _mm512_set1_epi32(1)), high);
}

#else

static AI V lane_group_i32(const R8 *sums) {
    V a = four_rows(sums), b = four_rows(sums + 4);
    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

static AI F load_pairs4(const uint8_t *const *row, size_t offset) {
    __m256 two = _mm256_castps128_ps256(load_pairs2(row[0], row[1], offset));
    return _mm256_insertf128_ps(two, load_pairs2(row[4], row[5], offset), 1);
}

static AI void lane_load_pairs(const uint8_t *const *row, size_t offset, F *here, F *behind) {
    F a = load_pairs4(row, offset), b = load_pairs4(row + 2, offset);
    *here = _mm256_shuffle_ps(a, b, 0x88);
    *behind = _mm256_shuffle_ps(a, b, 0xdd);
}

#endif

/* Rounds after each step, as the scores of four rows do. The bias follows the factor. Without a bias, those bytes are
 * read and ignored. */
static AI void lane_finish(V totals, const sl_code_rows *rows, const sl_query_code *query, const uint8_t *const *row,
                           float *out) {
    F factor, bias;
    lane_load_pairs(row, rows->factor, &factor, &bias);
    F score = M(mul_ps)(M(cvtepi32_ps)(totals), M(set1_ps)(query->scale));
    score = M(mul_ps)(score, factor);
    if (rows->bias) score = M(add_ps)(score, M(mul_ps)(bias, M(set1_ps)(query->bias_scale)));
    M(storeu_ps)(out, score);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Sixteen scores, in one register or two
 * ------------------------------------------------------------------------------------------------------------- */

/* Returns a bit for each of the first n of sixteen places. */
static AI uint32_t first_of(size_t n) {
    return n < 16 ? (1u << n) - 1 : 0xffffu;
}

#if LANE_BITS == 512

/* Packs the lanes whose bits are set, in order. Writes a whole register. */
static AI void lane_pack(void *to, V a, uint32_t bits) {
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi32((__mmask16)bits, a));
}

typedef F S;

static AI S sixteen(const float *from) {
    return _mm512_loadu_ps(from);
}

/* Loads n floats; the others are zero, and their memory is not touched. */
static AI S sixteen_first(const void *from, size_t n) {
    return _mm512_maskz_loadu_ps((__mmask16)first_of(n), from);
}

static AI void sixteen_store(float *to, S a) {
    _mm512_storeu_ps(to, a);
}

static AI S sixteen_splat(float value) {
    return _mm512_set1_ps(value);
}

/* Returns a where bits are set, and b elsewhere. */
static AI S sixteen_choose(S a, S b, uint32_t bits) {
    return _mm512_mask_mov_ps(b, (__mmask16)bits, a);
}

/* Returns a shifted by one place: `first`, then all of a but its last. */
static AI S sixteen_behind(S a, float first) {
    __m512i ends = _mm512_castps_si512(_mm512_set1_ps(first));
    return _mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(a), ends, 15));
}

static AI S sixteen_greater(S a, S b) {
    return _mm512_max_ps(a, b);
}

static AI S sixteen_lesser(S a, S b) {
    return _mm512_min_ps(a, b);
}

static AI S sixteen_negative(S a) {
    return _mm512_sub_ps(_mm512_setzero_ps(), a);
}

/* Returns the greater of the first and the ninth, and so on. */
static AI __m256 greater_half(S a) {
    return _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
}

/* Each returns the bits of `there` where a is above b, at least b, or equal to b. */
static AI uint32_t sixteen_above(S a, S b, uint32_t there) {
    return _mm512_mask_cmp_ps_mask((__mmask16)there, a, b, _CMP_GT_OQ);
}

static AI uint32_t sixteen_from(S a, S b, uint32_t there) {
    return _mm512_mask_cmp_ps_mask((__mmask16)there, a, b, _CMP_GE_OQ);
}

static AI uint32_t sixteen_same(S a, S b, uint32_t there) {
    return _mm512_mask_cmp_ps_mask((__mmask16)there, a, b, _CMP_EQ_OQ);
}

static AI void sixteen_pack(void *to, S a, uint32_t bits) {
    _mm512_storeu_ps(to, _mm512_maskz_compress_ps((__mmask16)bits, a));
}

#else

/* The numbers of the bits that are set in m, in order. KTH is the k-th of them, counted from 0. */
#define BIT_BEFORE(m, b) __builtin_popcount((m) & ((1u << (b)) - 1))
#define IS_KTH(m, k, b)  ((m) >> (b)&1 && BIT_BEFORE(m, b) == (k) ? (b) : 0)
#define KTH(m, k)                                                                                                      \
    (IS_KTH(m, k, 0) + IS_KTH(m, k, 1) + IS_KTH(m, k, 2) + IS_KTH(m, k, 3) + IS_KTH(m, k, 4) + IS_KTH(m, k, 5) +       \
     IS_KTH(m, k, 6) + IS_KTH(m, k, 7))
#define ORDER(m)                                                                                                       \
    { KTH(m, 0), KTH(m, 1), KTH(m, 2), KTH(m, 3), KTH(m, 4), KTH(m, 5), KTH(m, 6), KTH(m, 7) }
#define ORDERS4(m)  ORDER(m), ORDER((m) + 1), ORDER((m) + 2), ORDER((m) + 3)
#define ORDERS16(m) ORDERS4(m), ORDERS4((m) + 4), ORDERS4((m) + 8), ORDERS4((m) + 12)
#define ORDERS64(m) ORDERS16(m), ORDERS16((m) + 16), ORDERS16((m) + 32), ORDERS16((m) + 48)

static const uint8_t lane_orders[256][8] = {ORDERS64(0u), ORDERS64(64u), ORDERS64(128u), ORDERS64(192u)};

static AI void lane_pack(void *to, V a, uint32_t bits) {
    V order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)lane_orders[bits]));
    _mm256_storeu_si256((__m256i *)to, _mm256_permutevar8x32_epi32(a, order));
}

/* A mask of the lanes before the n-th; the first lane counts as number `from`. */
static AI V lanes_before(size_t n, int from) {
    V lanes = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(from));
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n < 16 ? (int)n : 16), lanes);
}

typedef struct S {
    F low, high;
} S;

static AI S sixteen(const float *from) {
    return (S){_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
}

static AI S sixteen_first(const void *from, size_t n) {
    const float *at = from;
    if (n >= 16) return sixteen(at);
    return (S){_mm256_maskload_ps(at, lanes_before(n, 0)), _mm256_maskload_ps(at + 8, lanes_before(n, 8))};
}

static AI void sixteen_store(float *to, S a) {
    _mm256_storeu_ps(to, a.low);
    _mm256_storeu_ps(to + 8, a.high);
}

static AI S sixteen_splat(float value) {
    return (S){_mm256_set1_ps(value), _mm256_set1_ps(value)};
}

static AI F lanes_of(uint32_t bits) {
    const V each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return (F)_mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)bits), each), each);
}

static AI S sixteen_choose(S a, S b, uint32_t bits) {
    return (S){_mm256_blendv_ps(b.low, a.low, lanes_of(bits)), _mm256_blendv_ps(b.high, a.high, lanes_of(bits >> 8))};
}

static AI S sixteen_behind(S a, float first) {
    const V one_on = _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6);
    F low = _mm256_permutevar8x32_ps(a.low, one_on), high = _mm256_permutevar8x32_ps(a.high, one_on);
    return (S){_mm256_blend_ps(low, _mm256_set1_ps(first), 1), _mm256_blend_ps(high, low, 1)};
}

static AI S sixteen_greater(S a, S b) {
    return (S){_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}

static AI S sixteen_lesser(S a, S b) {
    return (S){_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}

static AI S sixteen_negative(S a) {
    return (S){_mm256_sub_ps(_mm256_setzero_ps(), a.low), _mm256_sub_ps(_mm256_setzero_ps(), a.high)};
}

static AI __m256 greater_half(S a) {
    return _mm256_max_ps(a.low, a.high);
}

#define SIXTEEN_COMPARED(a, b, how)                                                                                    \
    ((uint32_t)_mm256_movemask_ps(_mm256_cmp_ps((a).low, (b).low, how)) |                                              \
     (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps((a).high, (b).high, how)) << 8)

static AI uint32_t sixteen_above(S a, S b, uint32_t there) {
    return SIXTEEN_COMPARED(a, b, _CMP_GT_OQ) & there;
}

static AI uint32_t sixteen_from(S a, S b, uint32_t there) {
    return SIXTEEN_COMPARED(a, b, _CMP_GE_OQ) & there;
}

static AI uint32_t sixteen_same(S a, S b, uint32_t there) {
    return SIXTEEN_COMPARED(a, b, _CMP_EQ_OQ) & there;
}

static AI void sixteen_pack(void *to, S a, uint32_t bits) {
    lane_pack(to, (V)a.low, bits & 255);
    lane_pack((float *)to + __builtin_popcount(bits & 255), (V)a.high, bits >> 8);
}

#endif

static AI float sixteen_greatest(S a) {
    __m256 half = greater_half(a);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

#define LANE_APPEND
static AI void lane_append(float *scores, uint32_t *ids, F score, uint32_t first, uint32_t bits) {
    lane_pack(scores, (V)score, bits);
#if LANE_BITS == 512
    const V lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#else
    const V lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
#endif
    lane_pack(ids, M(add_epi32)(lanes, M(set1_epi32)((int)first)), bits);
}

#define LANE_CANDIDATES

/* Without optimisation, gcc's gathers are macros, and their warnings of sign conversions would count as ours. On
 * processors without AVX-512, a gather of eight took longer than eight loads. */
#if LANE_BITS == 512 && defined(__OPTIMIZE__)

#define LANE_GATHERS

/* Loads n ids; the others are zero, and their memory is not touched. */
static AI V lane_ids(const uint32_t *from, size_t n) {
    return _mm512_maskz_loadu_epi32((__mmask16)first_of(n), from);
}

/* Returns the bits of `there` whose ids are below the end. */
static AI uint32_t lane_below(V ids, V end, uint32_t there) {
    return _mm512_mask_cmplt_epu32_mask((__mmask16)there, ids, end);
}

/* Returns the bits of `there` whose ids are not marked. */
static AI uint32_t lane_unmarked(const sl_visited *visited, V ids, uint32_t there) {
    const __m128i shift = _mm_cvtsi32_si128((int)visited->shift);
    V place = _mm512_and_si512(ids, _mm512_set1_epi32((int)visited->mask));
    V bit = _mm512_and_si512(_mm512_srl_epi32(ids, shift), _mm512_set1_epi32(31));
    bit = _mm512_sllv_epi32(_mm512_set1_epi32(1), bit);
    V word = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), (__mmask16)there, place, visited->words, 4);
    return _mm512_mask_testn_epi32_mask((__mmask16)there, word, bit);
}

#endif

/* ---------------------------------------------------------------------------------------------------------------
 * Many rows and many queries
 * ------------------------------------------------------------------------------------------------------------- */

#define LANE_TRANSPOSE
#if LANE_BITS == 512
#define LANE_TILE 4u
#else
#define LANE_TILE 2u /* in 16 registers */
#endif

static AI void lane_store(void *to, V a) {
    BITS_STORE(to, a);
}

static AI V lane_four(const void *from) {
    int four;
    memcpy(&four, from, sizeof four);
    return M(set1_epi32)(four);
}

static AI F lane_totals(R8 sum, int times, int32_t less) {
    V total = times == 2 ? M(add_epi32)((V)sum, (V)sum) : (V)sum;
    return M(cvtepi32_ps)(M(sub_epi32)(total, M(set1_epi32)(less)));
}

static AI uint32_t lane_above(F a, F b) {
#if LANE_BITS == 512
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
#else
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ));
#endif
}

/* Turns rows of 32-bit lanes into columns: first pairs within quarters of 128 bits, then the quarters. */
static AI void lane_transpose(V *rows) {
    V pairs[LANE_F], fours[LANE_F];
    for (size_t i = 0; i < LANE_F; i += 2) {
        pairs[i] = M(unpacklo_epi32)(rows[i], rows[i + 1]);
        pairs[i + 1] = M(unpackhi_epi32)(rows[i], rows[i + 1]);
    }
    for (size_t i = 0; i < LANE_F; i += 4) {
        fours[i] = M(unpacklo_epi64)(pairs[i], pairs[i + 2]);
        fours[i + 1] = M(unpackhi_epi64)(pairs[i], pairs[i + 2]);
        fours[i + 2] = M(unpacklo_epi64)(pairs[i + 1], pairs[i + 3]);
        fours[i + 3] = M(unpackhi_epi64)(pairs[i + 1], pairs[i + 3]);
    }
    for (size_t i = 0; i < 4; i++) {
#if LANE_BITS == 512
        V a = _mm512_shuffle_i32x4(fours[i], fours[i + 4], 0x44),
          b = _mm512_shuffle_i32x4(fours[i], fours[i + 4], 0xee);
        V c = _mm512_shuffle_i32x4(fours[i + 8], fours[i + 12], 0x44);
        V d = _mm512_shuffle_i32x4(fours[i + 8], fours[i + 12], 0xee);
        rows[i] = _mm512_shuffle_i32x4(a, c, 0x88);
        rows[i + 4] = _mm512_shuffle_i32x4(a, c, 0xdd);
        rows[i + 8] = _mm512_shuffle_i32x4(b, d, 0x88);
        rows[i + 12] = _mm512_shuffle_i32x4(b, d, 0xdd);
#else
        rows[i] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x20);
        rows[i + 4] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x31);
#endif
    }
}

/* ---------------------------------------------------------------------------------------------------------------
 * 16-bit products
 * ------------------------------------------------------------------------------------------------------------- */

#define PAIR_BIAS INT32_MAX

static AI A16 lane_dot_i16(A16 sum, V a, V b) {
    V pairs = (V)madd_add((R8)M(set1_epi32)(PAIR_BIAS), a, b);
    sum.all = M(add_epi64)(sum.all, pairs);
    sum.odd = M(add_epi64)(sum.odd, M(srli_epi64)(pairs, 32));
    return sum;
}

static AI int64_t lane_total16(A16 sum, size_t steps) {
    V even = M(sub_epi64)(sum.all, M(slli_epi64)(sum.odd, 32));
    return sum_i64(M(add_epi64)(even, sum.odd)) - (int64_t)(steps * LANE_F) * PAIR_BIAS;
}

static AI V lane_diff_i16(V a, V b) {
    return M(sub_epi16)(M(max_epi16)(a, b), M(min_epi16)(a, b));
}

static AI A16 lane_square_u16(A16 sum, V a) {
    V shifted = BITS(xor)(a, M(set1_epi16)(INT16_MIN));
    sum = lane_dot_i16(sum, shifted, shifted);
    sum.linear = madd_add(sum.linear, shifted, M(set1_epi16)(1));
    return sum;
}

static AI int64_t lane_total_squares(A16 sum, size_t steps) {
    int64_t constant = (int64_t)(steps * LANE_16) << 30;
    return lane_total16(sum, steps) + sum_i32((V)sum.linear) * 65536 + constant;
}

#endif
