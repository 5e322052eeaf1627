/* Vectors into rows and queries, and rows back into vectors, for codes I8, I16 and F32. encode4.h does so for I4. */
#ifndef SL_DISTANCE_CODEC_ENCODE_H
#define SL_DISTANCE_CODEC_ENCODE_H

#include "distance/codec/codec.h"
#include "distance/codec/quantise.h"

/*
 * Writes a vector into a row.
 *
 * Parameters:
 *   vector  passed sl_vector_check
 *   row     `pitch` bytes
 *   floats  scratch of dim floats
 *   error   gets the row's error; may be NULL
 */
void sl_encode_row(const sl_codec *codec, const void *vector, sl_dtype dtype, uint8_t *row, float *floats,
                   sl_quant_error *error);

/* Writes the row's vector as floats, under COSINE with its length. */
void sl_decode_row(const sl_codec *codec, const uint8_t *row, float *out);

/*
 * Writes what the codes of a quantised row leave of its vector x, as dim BF16 numbers.
 *
 * Codes and residual together hold some 8 bits more than the codes. BF16 numbers of x itself would hold hardly more
 * than 8-bit codes of its largest elements.
 */
void sl_encode_residual(const sl_codec *codec, const uint8_t *row, const float *x, uint16_t *residual);

/* Writes the vector that row and residual make together. */
void sl_decode_residual(const sl_codec *codec, const uint8_t *row, const uint16_t *residual, float *out);

/* Writes the elements of a row of a native integer type, exactly as they were given. */
void sl_decode_native(const sl_codec *codec, const uint8_t *row, void *out);

/*
 * Brings a query into the form of the kernels.
 *
 * Parameters:
 *   buffer  sl_query_size(codec) bytes, 64-byte aligned; *out points to it
 *   floats  gets the query's dim elements as floats, not normalised, for the re-rank
 *   norm2   gets |q|^2 of these floats; under L2 that of the encoded query, so that a vector is at distance 0 from its
 *           own row
 */
void sl_encode_query(const sl_codec *codec, const void *query, sl_dtype dtype, void *buffer, float *floats,
                     sl_query_code *out, float *norm2);

/*
 * Makes a query of a stored row of any codes, for comparing rows with one another. Such scores compare only among
 * themselves: under L2 they lack the constant |q|^2, as the scores of any query do.
 */
void sl_row_as_query(const sl_codec *codec, const uint8_t *row, void *buffer, sl_query_code *out);

/* Returns |x|^2 of a stored row as its scores have it: that of the decoded vector; 1 under COSINE. */
float sl_row_norm2(const sl_codec *codec, const uint8_t *row);

#endif
