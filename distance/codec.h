/*
 * From vectors to code rows and back: what a row of layer 0 holds for each combination of codes, input type and
 * metric, and how a query is brought into the form the kernels want.
 *
 * A row: codes, padding to 4, factor, then bias where the metric needs one, then norm under cosine.
 *
 *   metric   factor (quantised / native integer / f32)   bias           a score is
 *   IP       scale of the row / 1 / 1                    none (*)       x.q
 *   COSINE   such that decoded row has length 1          none (*)       x.q / (|x| |q|), the query made unit
 *   L2       scale of the row / 1 / 1                    -|x|^2 / 2     x.q - |x|^2 / 2, so |x-q|^2 = |q|^2 - 2 score
 *
 * (*) U8 input is stored as it is and the query as q - 128, so IP and COSINE rows of U8 carry a bias of
 *     128 * (sum of the row) * factor, which under COSINE counts times the query's scale (bias_scale). Under L2 the
 *     shift by 128 cancels, and the row's |x|^2 is that of x - 128.
 *
 * F32, F16 and BF16 input is quantised with one scale a vector, max|x| / 127 or / 32767, codes in -127 to 127 or -32767
 * to 32767; under L2 |x|^2 is that of the decoded row, so that a row is at distance 0 from itself. An F32 row holds at
 * least its width, and factor, bias and norm may lie within it: they are finite.
 */
#ifndef SL_DISTANCE_CODEC_H
#define SL_DISTANCE_CODEC_H

#include "distance/kernels.h"

#include <math.h>
#include <string.h>

typedef struct sl_codec {
    size_t dim;
    sl_metric metric;
    sl_dtype dtype; /* I8, U8, I16: native, exact; F32 stands for all floating-point input */
    sl_codes codes;
    sl_code_rows rows; /* geometry; base is the owner's to set */
    sl_code_rows rest; /* of I4: the rows of what 4 bits leave over; pitch 0 otherwise */
    size_t norm;       /* byte offset of the length of x under COSINE, in the rest's rows where there is one; or 0 */
} sl_codec;

/* Fills the geometry. Pitch: payload rounded up to 64 where that adds at most a quarter, else to 16; F32 rows always
 * hold their whole width. Errors: SL_EINVAL, SL_ETYPE, SL_ELIMIT, SL_EUNSUPPORTED, with what to do instead. */
sl_status sl_codec_init(sl_codec *codec, size_t dim, sl_metric metric, sl_dtype dtype, sl_codes codes);

/* Bytes of a row of `rows` that hold something or must be finite: the others are padding. */
size_t sl_codec_payload(const sl_codec *codec);

/* Bytes of the codes at the beginning of a row. */
size_t sl_codes_size(size_t dim, sl_codes codes);

/* A field of a row, which may lie anywhere. */
static inline float sl_field_get(const uint8_t *row, size_t offset) {
    float value;
    memcpy(&value, row + offset, sizeof value);
    return value;
}
static inline int sl_field_is_finite(const uint8_t *row, size_t offset) {
    return isfinite(sl_field_get(row, offset)) != 0;
}
static inline void sl_field_put(uint8_t *row, size_t offset, double value) {
    float single = (float)value;
    memcpy(row + offset, &single, sizeof single);
}

/* Bytes of an array of n rows with the readable step behind it; 0 where that does not fit in size_t. */
size_t sl_codec_rows_size(const sl_codec *codec, size_t n);

static inline int sl_dtype_is_float(sl_dtype dtype) {
    return dtype == SL_F32 || dtype == SL_F16 || dtype == SL_BF16;
}

/* SL_ETYPE where vectors of this type cannot be given to the codec. */
sl_status sl_codec_accepts(const sl_codec *codec, sl_dtype dtype);

/* SL_EVALUE where the vector holds NaN or infinity, or is zero under COSINE, or has a length whose square single
 * precision cannot hold with room to spare: above 9e18, or under COSINE below 1e-18. */
sl_status sl_vector_check(sl_metric metric, sl_dtype dtype, const void *vector, size_t dim);

/* |x - decoded| / |x|, gathered over rows; each thread has its own and they are merged. */
typedef struct sl_quant_error {
    double sum, max;
    size_t count;
} sl_quant_error;
void sl_quant_error_merge(sl_quant_error *into, const sl_quant_error *from);

/* One vector that has passed sl_vector_check into one row of `pitch` bytes. `floats` is scratch of dim floats. `error`
 * may be NULL. */
void sl_encode_row(const sl_codec *codec, const void *vector, sl_dtype dtype, uint8_t *row, float *floats,
                   sl_quant_error *error);

/* The row's vector as floats (under COSINE with its length). */
void sl_decode_row(const sl_codec *codec, const uint8_t *row, float *out);

/* What the codes of a quantised row leave of its vector x, as dim BF16 numbers: together they hold some 8 bits more
 * than the codes do, where BF16 numbers of x itself would hold hardly more than 8-bit codes of its largest elements. */
void sl_encode_residual(const sl_codec *codec, const uint8_t *row, const float *x, uint16_t *residual);

/* The vector that row and residual make together. */
void sl_decode_residual(const sl_codec *codec, const uint8_t *row, const uint16_t *residual, float *out);

/* The exact native elements of a row (integer dtypes), as they were given. */
void sl_decode_native(const sl_codec *codec, const uint8_t *row, void *out);

/* A query ready for the kernels. `buffer` is 64-byte aligned, sl_query_size(codec) bytes; `floats`, dim floats, keeps
 * the query as f32 for re-ranking (not normalised). *norm2 gets |q|^2 of that, but under L2 the |q|^2 that belongs to
 * the score, of the query as it was encoded, so that a vector is at distance 0 from its own row. */
size_t sl_query_size(const sl_codec *codec);
void sl_encode_query(const sl_codec *codec, const void *query, sl_dtype dtype, void *buffer, float *floats,
                     sl_query_code *out, float *norm2);

/* A stored row as a query, for comparing rows with one another; scores then compare among themselves (under L2 the
 * constant |q|^2 is left out as for any query). */
void sl_row_as_query(const sl_codec *codec, const uint8_t *row, void *buffer, sl_query_code *out);

/* |x|^2 of a stored row in the terms of its scores: of its decoded vector, and 1 under COSINE. */
float sl_row_norm2(const sl_codec *codec, const uint8_t *row);

/* dim elements of src as floats, the one place where types turn into f32. */
void sl_to_float(sl_dtype dtype, const void *src, float *dst, size_t n);

/* The way back, to F32, F16 or BF16, rounded to nearest, ties to even. */
void sl_from_float(sl_dtype dtype, const float *src, void *dst, size_t n);

/* encode4.c: codes I4, a row of 4 bits an element for the walk and another of 8 bits beside it for what comes after.
 * Both together are the vector to some 12 bits; under COSINE made unit. `x` is overwritten. */
void sl_encode_row4(const sl_codec *codec, float *x, uint8_t *row, uint8_t *rest, sl_quant_error *error);
void sl_decode_row4(const sl_codec *codec, const uint8_t *row, const uint8_t *rest, float *out);

/* The 4 bits alone: levels and factor of x; returns the factor. */
float sl_encode_levels(const sl_codec *codec, const float *x, uint8_t *row);

/* The largest magnitude; NaN where there is one. */
float sl_largest(const float *x, size_t n);

/* x as n signed bytes, a query over I8 rows; what they leave of x replaces it. */
void sl_take_byte(float *x, size_t n, float scale, int8_t *code, sl_query_code *out);

/* A query in two times 8 bits, each over both rows; rows[0] alone is the walk's. Of I8 codes of floats there is one
 * row, and rest is over that. */
typedef struct sl_query4 {
    sl_query_code rows[2], rest[2];
} sl_query4;

/* `buffer`: 64-byte aligned, sl_query4_size(codec) bytes; `scratch`: dim floats; norm2: |x|^2. */
size_t sl_query4_size(const sl_codec *codec);
void sl_encode_query4(const sl_codec *codec, const float *x, void *buffer, float *scratch, sl_query4 *out,
                      double norm2);

/* x in 8 bits over the 4-bit rows alone; x is overwritten. `buffer`: 64-byte aligned, sl_query4_size(codec) / 2 bytes.
 */
void sl_encode_query_levels(const sl_codec *codec, float *x, void *buffer, sl_query_code *out);

/* The query against all the bits there are of rows `ids`. */
void sl_score4(const sl_kernels *kernels, const sl_codec *codec, const sl_query4 *query, const uint32_t *ids, size_t n,
               float *out);

/* The 4 bits of a stored row as a query, for comparing rows with one another by their 4 bits. `buffer`: 2 * width. */
void sl_row4_as_query(const sl_codec *codec, const uint8_t *row, void *buffer, sl_query_code *out);

/* Exact-as-possible score of two raw vectors of one type under a metric (the public sl_score without its checks). */
double sl_score_pair(const sl_kernels *kernels, sl_metric metric, sl_dtype dtype, const void *a, const void *b,
                     size_t dim);

#endif
