/*
 * Codes I4. A vector has two rows: one of 4 bits an element for the walk, and one of 8 bits an element (`rest`) for the
 * re-rank. Both together hold the vector, normalised under COSINE, to some 12 bits.
 */
#ifndef SL_DISTANCE_CODEC_ENCODE4_H
#define SL_DISTANCE_CODEC_ENCODE4_H

#include "distance/codec/codec.h"
#include "distance/codec/quantise.h"

/* Encodes x into both rows; x is overwritten. `error` may be NULL. */
void sl_encode_row4(const sl_codec *codec, float *x, uint8_t *row, uint8_t *rest, sl_quant_error *error);

/* Decodes both rows to floats. */
void sl_decode_row4(const sl_codec *codec, const uint8_t *row, const uint8_t *rest, float *out);

/* Encodes x into the 4-bit row: levels and factor. Returns the factor. */
float sl_encode_levels(const sl_codec *codec, const float *x, uint8_t *row);

/*
 * A query in two parts of 8 bits, each over both rows. The walk uses rows[0] alone. A codec of I8 codes has one row,
 * and `rest` is the query over that row.
 */
typedef struct sl_query4 {
    sl_query_code rows[2], rest[2];
} sl_query4;

/* Encodes x as such a query.
 * Parameters: `buffer`, sl_query4_size(codec) bytes, 64-byte aligned; `scratch`, dim floats; `norm2`, |x|^2. */
void sl_encode_query4(const sl_codec *codec, const float *x, void *buffer, float *scratch, sl_query4 *out,
                      double norm2);

/* Encodes x as a query of 8 bits over the 4-bit rows alone; x is overwritten. `buffer`: sl_query4_size(codec) / 2
 * bytes, 64-byte aligned. */
void sl_encode_query_levels(const sl_codec *codec, float *x, void *buffer, sl_query_code *out);

/* Scores rows `ids` by all bits of rows and query. */
void sl_score4(const sl_kernels *kernels, const sl_codec *codec, const sl_query4 *query, const uint32_t *ids, size_t n,
               float *out);

/* Makes a query of a stored 4-bit row, to compare such rows with one another. `buffer`: 2 * width bytes. */
void sl_row4_as_query(const sl_codec *codec, const uint8_t *row, void *buffer, sl_query_code *out);

#endif
