/* Encodes vectors as rows and queries, and decodes rows, for codes I8, I16 and F32. encode4.h does so for I4. */
#ifndef SL_DISTANCE_CODEC_ENCODE_H
#define SL_DISTANCE_CODEC_ENCODE_H

#include "distance/codec/codec.h"
#include "distance/codec/quantise.h"

/*
 * Encodes a vector into a row.
 *
 * Parameters:
 *   vector  passed sl_vector_check
 *   row     `pitch` bytes
 *   floats  scratch of dim floats
 *   error   gets the row's error; may be NULL
 */
void sl_encode_row(const sl_codec *codec, const void *vector, sl_dtype dtype, uint8_t *row, float *floats,
                   sl_quant_error *error);

/* Decodes a row to floats, under COSINE with its length. */
void sl_decode_row(const sl_codec *codec, const uint8_t *row, float *out);

/*
 * Writes the residual of a quantised row, x minus the decoded row, as dim BF16 numbers.
 *
 * Codes and residual together hold some 8 bits more than the codes. BF16 numbers of x itself would hold hardly more
 * than 8-bit codes do of its largest elements.
 */
void sl_encode_residual(const sl_codec *codec, const uint8_t *row, const float *x, uint16_t *residual);

/* Decodes the vector that row and residual make together. */
void sl_decode_residual(const sl_codec *codec, const uint8_t *row, const uint16_t *residual, float *out);

/* Decodes a row of a native integer type to exactly the elements given. */
void sl_decode_native(const sl_codec *codec, const uint8_t *row, void *out);

/*
 * Encodes a query for the kernels.
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
 * Makes a query of a stored row of any codes, to compare rows with one another. Such scores compare only among
 * themselves: like those of any query, they lack the constant |q|^2 under L2.
 */
void sl_row_as_query(const sl_codec *codec, const uint8_t *row, void *buffer, sl_query_code *out);

/* Returns |x|^2 of a stored row as its scores use it: of the decoded vector; 1 under COSINE. */
float sl_row_norm2(const sl_codec *codec, const uint8_t *row);

#endif
