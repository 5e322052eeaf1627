/*
 * The lane operations of the x86 tiers, once for 256-bit and 512-bit registers. A tier's file says
 *
 *   LANE_BITS                  256 or 512
 *   LANE_DPBUSD, LANE_DPWSSD   the VNNI instructions, where the tier has them
 *
 * Why no sum overflows, for any values and any dim up to 65536:
 *   lane_row8    a whole row's sum is at most 255 * 128 * 65536 < 2^31, so that 32-bit lanes may also be added to one
 *                another. Without VNNI bytes are widened first: vpmaddubsw saturates at 16 bits.
 *   lane_row4    at most 15 * 128 * 65536 < 2^27; a pair of products of vpmaddubsw at most 2 * 15 * 128 < 2^15
 *   A8           a lane takes 4 products a register, of at most 255 * 255, and a register every 32 bytes at least:
 *                4 * 65025 * 2048 < 2^30. Lanes are added in 64 bits.
 *   A16          a pair of products lies in [-2 * 32768 * 32767, 2^31], and 2^31 does not fit. 2^31 - 1 more it lies in
 *                [65535, 2^32 - 1], an unsigned 32-bit number, whatever the wrapping sum went through. Those are added
 *                up in 64 bits: `odd` takes the upper one of each 64, `all` both as they stand together, modulo 2^64;
 *                the lower ones' sum is all - (odd << 32). What was added a step is subtracted at the end.
 *   squares      of u in [0, 65535]: with v = u - 32768, u^2 = v^2 + 65536 v + 2^30, and v is a signed 16-bit number.
 *                `linear` sums v in 32 bits: at most 2 * 32768 a register and lane, 4096 registers: 2^28.
 */
#ifndef SL_DISTANCE_X86_H
#define SL_DISTANCE_X86_H

#include "distance/lanes.h"

#include <immintrin.h>
#include <math.h>

#define LANE_8  (LANE_BITS / 8u)
#define LANE_16 (LANE_BITS / 16u)
#define LANE_F  (LANE_BITS / 32u)

#if LANE_BITS == 512
typedef __m512i V;
typedef __m512 F;
#define M(op)         _mm512_##op
#define BITS(op)      _mm512_##op##_si512
#define LOW_HALF(v)   _mm512_castsi512_si256(v)
#define BITS_STORE    _mm512_storeu_si512
#define HIGH_HALF(v)  _mm512_extracti64x4_epi64(v, 1)
#define LANE_ROWS     8u
#define LANE_ROWS_I16 8u
#else
typedef __m256i V;
typedef __m256 F;
#define M(op)             _mm256_##op
#define BITS(op)          _mm256_##op##_si256
#define LOW_HALF(v)       _mm256_castsi256_si128(v)
#define BITS_STORE(to, v) _mm256_storeu_si256((__m256i *)(to), v)
#define HIGH_HALF(v)      _mm256_extracti128_si256(v, 1)
#define LANE_ROWS         8u
#define LANE_ROWS_I16     4u /* two sums each, in 16 registers */
#endif

/* Sums in 32-bit lanes, of a type of their own: were they a V, gcc would copy them before and after every VNNI
 * instruction, which tells their element type. */
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

static AI F lane_f32(const void *from, size_t n) {
    if (n == LANE_F) return _mm512_loadu_ps(from);
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), from);
}

/* n 16-bit integers. */
static AI __m256i load_half(const void *from, size_t n) {
    if (n == LANE_F) return _mm256_loadu_si256((const __m256i *)from);
    return _mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), from);
}

#else

/* AVX2 has no masked load of bytes: a part is copied to where a whole register may be read. */
static AI V lane_load(const void *from, size_t bytes) {
    if (bytes == LANE_8) return _mm256_loadu_si256((const __m256i *)from);
    uint8_t whole[LANE_8] = {0};
    memcpy(whole, from, bytes);
    return _mm256_loadu_si256((const __m256i *)whole);
}

static AI F lane_f32(const void *from, size_t n) {
    if (n == LANE_F) return _mm256_loadu_ps(from);
    __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_maskload_ps(from, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), index));
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

/* Of each 128 bits of a and b: a0 + a2, b0 + b2, a1 + a3, b1 + b3. */
static AI V merge32(V a, V b) {
    return M(add_epi32)(M(unpacklo_epi32)(a, b), M(unpackhi_epi32)(a, b));
}

static AI V merge64(V a, V b) {
    return M(add_epi32)(M(unpacklo_epi64)(a, b), M(unpackhi_epi64)(a, b));
}

static AI F merge32f(F a, F b) {
    return M(add_ps)(M(unpacklo_ps)(a, b), M(unpackhi_ps)(a, b));
}

/* The four totals, while the transposition that brings them side by side is going on anyway. */
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

/* The instruction wants one unsigned and one signed operand: one of them is shifted by 128, and what that added is
 * summed up beside it. */
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

/* Bytes as 16-bit integers: those at even and those at odd places. */
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

static AI R8 lane_row4(R8 sum, V nibbles, V query) {
    return madd_add(sum, M(maddubs_epi16)(nibbles, query), M(set1_epi16)(1));
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

/* Without optimisation gcc's gathers are macros, whose conversions of sign count as ours. */
#if LANE_BITS == 512 && defined(__OPTIMIZE__)
/* ---------------------------------------------------------------------------------------------------------------
 * Sixteen rows at once, whose totals come side by side in one register
 * ------------------------------------------------------------------------------------------------------------- */

#define LANE_SIXTEEN

/* Of each pair of 128-bit quarters of a and b: the sum, a's before b's. */
static AI V merge128(V a, V b) {
    return _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
}

static AI V four_rows(const R8 *sums) {
    return merge64(merge32((V)sums[0], (V)sums[1]), merge32((V)sums[2], (V)sums[3]));
}

static AI V lane_sum16_i32(const R8 *sums) {
    return merge128(merge128(four_rows(sums), four_rows(sums + 4)),
                    merge128(four_rows(sums + 8), four_rows(sums + 12)));
}

/* Two floats, one behind the other, of each of 8 rows. */
static AI F two_of_8(const uint8_t *const *row, size_t offset) {
    F all = _mm512_setzero_ps();
    __m128 pair[4];
    for (size_t i = 0; i < 4; i++) {
        __m128 low = _mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(row[2 * i] + offset)));
        pair[i] = _mm_loadh_pi(low, (const __m64 *)(row[2 * i + 1] + offset));
    }
    all = _mm512_insertf32x4(all, pair[0], 0);
    all = _mm512_insertf32x4(all, pair[1], 1);
    all = _mm512_insertf32x4(all, pair[2], 2);
    return _mm512_insertf32x4(all, pair[3], 3);
}

/* Rounded after each step, as for four rows. A bias lies behind its factor; where there is none, what lies there is
 * read and left. */
static AI void lane_finish16(V totals, const sl_code_rows *rows, const sl_query_code *query, const uint8_t *const *row,
                             float *out) {
    const V even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    F low = two_of_8(row, rows->factor), high = two_of_8(row + 8, rows->factor);
    F score = _mm512_mul_ps(_mm512_cvtepi32_ps(totals), _mm512_set1_ps(query->scale));
    score = _mm512_mul_ps(score, _mm512_permutex2var_ps(low, even, high));
    if (rows->bias) {
        F bias = _mm512_permutex2var_ps(low, _mm512_add_epi32(even, _mm512_set1_epi32(1)), high);
        score = _mm512_add_ps(score, _mm512_mul_ps(bias, _mm512_set1_ps(query->bias_scale)));
    }
    _mm512_storeu_ps(out, score);
}

/* ---------------------------------------------------------------------------------------------------------------
 * What a walk does before and after it scores
 * ------------------------------------------------------------------------------------------------------------- */

#define LANE_SIFTS

/* Of sixteen places those before the n-th. */
static AI __mmask16 first_of(size_t n) {
    return (__mmask16)(n < 16 ? (1u << n) - 1 : 0xffffu);
}

/* All of sixteen links are looked at before any is marked. The links' words may change meanwhile, each as a whole. */
static size_t unseen(sl_visited *visited, const uint32_t *links, size_t degree, size_t count, uint32_t *found) {
    const __m512i end = _mm512_set1_epi32((int)(uint32_t)count), mask = _mm512_set1_epi32((int)visited->mask);
    const __m128i shift = _mm_cvtsi32_si128((int)visited->shift);
    uint32_t *words = visited->words;
    size_t kept = 0;
    for (size_t j = 0; j < degree; j += 16) {
        __mmask16 all = first_of(degree - j);
        __m512i ids = _mm512_maskz_loadu_epi32(all, links + j), place = _mm512_and_si512(ids, mask);
        __mmask16 valid = _mm512_mask_cmplt_epu32_mask(all, ids, end);
        /* Those before the first that is no id. */
        valid = (__mmask16)(valid & (valid ^ (valid + 1u)));
        __m512i word = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), valid, place, words, 4);
        __m512i bit = _mm512_and_si512(_mm512_srl_epi32(ids, shift), _mm512_set1_epi32(31));
        bit = _mm512_sllv_epi32(_mm512_set1_epi32(1), bit);
        __mmask16 fresh = _mm512_mask_testn_epi32_mask(valid, word, bit);
        _mm512_storeu_si512(found + kept, _mm512_maskz_compress_epi32(fresh, ids));
        kept += (size_t)__builtin_popcount(fresh);
        if (valid != 0xffff) break;
    }
    /* What stands twice among sixteen, in a damaged list or one that is being written, counts once. */
    size_t once = 0;
    sl_visited table = *visited; /* a copy stays in registers */
    for (size_t i = 0; i < kept; i++) {
        uint32_t id = found[i];
        found[once] = id;
        once += !sl_visited_mark(&table, id);
    }
    return once;
}

/* Of so many candidates all tops are looked at, which takes less time than a peak's detour; peaks are not kept. */
enum { FEW = 8192 };

static const float no_scores[16] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY,
                                    -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY,
                                    -INFINITY, -INFINITY, -INFINITY, -INFINITY};

static AI uint32_t count_from(const float *scores, uint32_t n, float bound) {
    const F least = _mm512_set1_ps(bound);
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 there = first_of(n - i);
        F score = _mm512_maskz_loadu_ps(there, scores + i);
        count += (uint32_t)__builtin_popcount(_mm512_mask_cmp_ps_mask(there, score, least, _CMP_GE_OQ));
    }
    return count;
}

static AI float most_of(F a) {
    __m256 half = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

static AI void range_of(const float *scores, uint32_t n, float *low, float *high) {
    const F none = _mm512_set1_ps(-INFINITY);
    F most = none, least = none; /* of the scores, and of what they are below zero */
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 there = first_of(n - i);
        F score = _mm512_maskz_loadu_ps(there, scores + i);
        most = _mm512_mask_max_ps(most, there, most, score);
        least = _mm512_mask_max_ps(least, there, least, _mm512_sub_ps(_mm512_setzero_ps(), score));
    }
    *low = -most_of(least);
    *high = most_of(most);
}

static void empty(sl_candidates *all) {
    const F none = _mm512_loadu_ps(no_scores);
    all->count = 0;
    all->floor = -INFINITY;
    _mm512_storeu_ps(all->open, none);
    _mm512_storeu_ps(all->tops, none);
    _mm512_storeu_ps(all->near, none);
}

/* The best of each sixteen of n, from the one that holds `first`; behind the last one nothing is open. */
static AI size_t renew_best(const float *of, size_t n, size_t first, float *into) {
    size_t i = first / 16;
    for (; 16 * i < n; i++)
        into[i] = most_of(_mm512_loadu_ps(of + 16 * i));
    _mm512_storeu_ps(into + i, _mm512_loadu_ps(no_scores));
    return i;
}

static AI void renew_tops(sl_candidates *all, size_t first) {
    _mm512_storeu_ps(all->open + all->count, _mm512_loadu_ps(no_scores));
    size_t tops = renew_best(all->open, all->count, first, all->tops);
    if (all->count > FEW) (void)renew_best(all->tops, tops, first > FEW ? first / 16 : 0, all->peaks);
}

/* Those of sixteen scores that are nearer than the last that is asked for: each place gets what was there, or the
 * lesser of what comes and what stood before it. */
static AI void note_near(sl_candidates *all, F scores, __mmask16 kept) {
    F near = _mm512_loadu_ps(all->near), ends = _mm512_set1_ps(INFINITY);
    uint32_t nearer = _mm512_mask_cmp_ps_mask(kept, scores, _mm512_set1_ps(all->near[all->near_count - 1]), _CMP_GT_OQ);
    if (!nearer) return;
    for (; nearer; nearer &= nearer - 1) {
        F score = _mm512_permutexvar_ps(_mm512_set1_epi32(__builtin_ctz(nearer)), scores);
        V before = _mm512_alignr_epi32(_mm512_castps_si512(near), _mm512_castps_si512(ends), 15);
        near = _mm512_max_ps(near, _mm512_min_ps(_mm512_castsi512_ps(before), score));
    }
    _mm512_storeu_ps(all->near, near);
}

static void admit(sl_candidates *all, const float *scores, const uint32_t *ids, size_t n) {
    const F floor = _mm512_set1_ps(all->floor);
    size_t count = all->count, first = count;
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 there = first_of(n - i);
        F score = _mm512_maskz_loadu_ps(there, scores + i);
        V id = _mm512_maskz_loadu_epi32(there, ids + i);
        __mmask16 kept = _mm512_mask_cmp_ps_mask(there, score, floor, _CMP_GT_OQ);
        F few = _mm512_maskz_compress_ps(kept, score);
        _mm512_storeu_ps(all->scores + count, few);
        _mm512_storeu_ps(all->open + count, few);
        _mm512_storeu_si512(all->ids + count, _mm512_maskz_compress_epi32(kept, id));
        count += (size_t)__builtin_popcount(kept);
        if (all->near_count) note_near(all, score, kept);
    }
    all->count = count;
    renew_tops(all, first);
}

/* The greatest of n, in whole sixteens, and where it stands. */
static AI float greatest(const float *x, size_t n, size_t *place) {
    F most = _mm512_loadu_ps(x);
    for (size_t i = 16; i < n; i += 16)
        most = _mm512_max_ps(most, _mm512_loadu_ps(x + i));
    float found = most_of(most);
    most = _mm512_set1_ps(found);
    for (*place = 0;; *place += 16) {
        uint32_t here = _mm512_cmp_ps_mask(_mm512_loadu_ps(x + *place), most, _CMP_EQ_OQ);
        if (!here) continue;
        *place += (size_t)__builtin_ctz(here);
        return found;
    }
}

/* A score in its sixteen, which is written as a whole, so that its next load can take it from the store. Returns the
 * greatest of the sixteen. */
static AI float put_score(float *x, size_t place, float score) {
    F all = _mm512_loadu_ps(x + place / 16 * 16);
    all = _mm512_mask_mov_ps(all, (__mmask16)(1u << place % 16), _mm512_set1_ps(score));
    _mm512_storeu_ps(x + place / 16 * 16, all);
    return most_of(all);
}

static size_t best(sl_candidates *all) {
    size_t peak = 0, top, place, tops = (all->count + 15) / 16;
    int many = all->count > FEW;
    if (many) {
        (void)greatest(all->peaks, (tops + 15) / 16, &peak);
        tops = 16;
    }
    if (greatest(all->tops + 16 * peak, tops, &top) == -INFINITY) return SL_NO_PLACE;
    top += 16 * peak;
    (void)greatest(all->open + 16 * top, 16, &place);
    place += 16 * top;
    float left = put_score(all->tops, top, put_score(all->open, place, -INFINITY));
    if (many) (void)put_score(all->peaks, peak, left);
    return place;
}

static size_t lane_sift(float *scores, float *open, uint32_t *ids, size_t n, float bound, uint32_t alike) {
    const F least = _mm512_set1_ps(bound);
    size_t kept = 0;
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 there = first_of(n - i);
        F score = _mm512_maskz_loadu_ps(there, scores + i);
        V id = _mm512_maskz_loadu_epi32(there, ids + i);
        uint32_t stay = _mm512_mask_cmp_ps_mask(there, score, least, _CMP_GT_OQ);
        uint32_t on = _mm512_mask_cmp_ps_mask(there, score, least, _CMP_EQ_OQ);
        for (; on && alike; on &= on - 1, alike--)
            stay |= on & -on;
        if (open) {
            F other = _mm512_maskz_loadu_ps(there, open + i);
            _mm512_storeu_ps(open + kept, _mm512_maskz_compress_ps((__mmask16)stay, other));
        }
        _mm512_storeu_ps(scores + kept, _mm512_maskz_compress_ps((__mmask16)stay, score));
        _mm512_storeu_si512(ids + kept, _mm512_maskz_compress_epi32((__mmask16)stay, id));
        kept += (size_t)__builtin_popcount(stay);
    }
    return kept;
}

static void lane_tops(sl_candidates *all) {
    renew_tops(all, 0);
}

#endif

/* ---------------------------------------------------------------------------------------------------------------
 * Many rows and many queries
 * ------------------------------------------------------------------------------------------------------------- */

#define LANE_TRANSPOSE
#if LANE_BITS == 512
#define LANE_TILE 4u
#else
#define LANE_TILE 2u /* of 16 registers */
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

#if LANE_BITS == 512

#define LANE_APPEND
static AI void lane_append(float *scores, uint32_t *ids, F score, uint32_t first, uint32_t bits) {
    const V lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm512_storeu_ps(scores, _mm512_maskz_compress_ps((__mmask16)bits, score));
    V numbers = _mm512_add_epi32(lanes, _mm512_set1_epi32((int)first));
    _mm512_storeu_si512(ids, _mm512_maskz_compress_epi32((__mmask16)bits, numbers));
}

#endif

/* Rows of 32-bit lanes into columns: pairs within quarters of 128 bits, then the quarters. */
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

/* ---------------------------------------------------------------------------------------------------------------
 * Floats
 * ------------------------------------------------------------------------------------------------------------- */

static AI F lane_fma(F a, F b, F c) {
    return M(fmadd_ps)(a, b, c);
}

static AI F lane_add(F a, F b) {
    return M(add_ps)(a, b);
}

static AI F lane_sub(F a, F b) {
    return M(sub_ps)(a, b);
}

static AI F lane_mul(F a, F b) {
    return M(mul_ps)(a, b);
}

static AI F lane_splat(float value) {
    return M(set1_ps)(value);
}

#endif
