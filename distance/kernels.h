/*
 * The kernel table: everything that must be fast, once for each ISA tier, bound once.
 *
 * One body (body.h) holds the loops; a tier is a thin file that defines the lane operations and includes it. Integer
 * results are exact and the same on every tier for every value and every dim up to SL_MAX_DIM; float results agree
 * with the scalar tier within dim * 2^-23 * sum|a_i b_i|.
 */
#ifndef SL_DISTANCE_KERNELS_H
#define SL_DISTANCE_KERNELS_H

#include <shortlist.h>

/* Rows are read in whole steps of this many bytes, and the query is zero behind its last element, so no kernel over
 * rows has a tail. */
#define SL_ROW_STEP 64u

/* Geometry of an array of code rows. A row is `width` bytes that the kernel reads (the codes, and behind them
 * anything readable: the query is zero there; F32 rows must be finite there, since 0 * NaN is NaN), and somewhere in
 * its pitch a float factor and, if bias is not 0, a float bias. Behind the last row SL_ROW_STEP bytes are readable. */
typedef struct sl_code_rows {
    const uint8_t *base;
    size_t pitch;  /* bytes from row to row, a multiple of 4 */
    size_t width;  /* bytes read of each, a multiple of SL_ROW_STEP */
    size_t factor; /* byte offset of the factor in a row, a multiple of 4 */
    size_t bias;   /* byte offset of the bias, or 0: no bias */
} sl_code_rows;

/* A query in the form the row kernels want. `code` is 64-byte aligned, `width` bytes, zero behind the last element:
 *   I8   int8_t; rows hold unsigned bytes (a signed code x is stored as x + 128), so that vpdpbusd takes them as they
 *        are and `offset` takes out what the +128 added (128 * sum of the query), once a query
 *   I16  int16_t; rows hold int16_t
 *   F32  float; rows hold float */
typedef struct sl_query_code {
    const void *code;
    int64_t offset; /* of I8; 0 otherwise */
    float scale;
    float bias_scale; /* what the rows' bias counts for */
} sl_query_code;

/* out[i] = (dot(row ids[i], query) - offset) * scale * factor(row) + bias(row) * bias_scale, for i < n: larger is
 * nearer whatever the metric. While row i is scored row i + ahead is prefetched; ahead 0 prefetches nothing. ids need
 * not differ. */
typedef void sl_score_fn(const sl_code_rows *rows, const sl_query_code *query, const uint32_t *ids, size_t n,
                         size_t ahead, float *out);

/* Re-ranking: a row of one type against a float query, dim elements, no alignment asked, nothing read behind dim. The
 * row's elements count as element * scale. */
typedef struct sl_refine_kernels {
    float (*dot)(const void *row, const float *query, size_t dim, float scale);
    float (*l2)(const void *row, const float *query, size_t dim, float scale);
    /* Both sums of a cosine in one pass over the row: returns the dot product, *row_norm2 gets the row's own. */
    float (*dot_norm)(const void *row, const float *query, size_t dim, float scale, float *row_norm2);
} sl_refine_kernels;

typedef struct sl_kernels {
    sl_isa isa;
    sl_score_fn *score[3]; /* by sl_codes: I8, I16, F32 */

    /* One to one on raw vectors of any alignment; nothing is read behind dim. */
    int64_t (*dot_i8)(const int8_t *a, const int8_t *b, size_t dim);
    int64_t (*l2_i8)(const int8_t *a, const int8_t *b, size_t dim);
    int64_t (*dot_u8)(const uint8_t *a, const uint8_t *b, size_t dim);
    int64_t (*l2_u8)(const uint8_t *a, const uint8_t *b, size_t dim);
    int64_t (*dot_i16)(const int16_t *a, const int16_t *b, size_t dim);
    int64_t (*l2_i16)(const int16_t *a, const int16_t *b, size_t dim);

    sl_refine_kernels refine[4]; /* by sl_refine: F32 and I16; rows of BF16 become floats first (codec.h) */
} sl_kernels;

/* The table of one tier; NULL where this build or machine lacks it. */
const sl_kernels *sl_kernels_of(sl_isa isa);

/* The table of the tier in use, sl_cpu_tier(). */
const sl_kernels *sl_kernels_best(void);

#endif
