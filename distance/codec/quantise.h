/* Floats to integer codes of one scale, and the error that this leaves. */
#ifndef SL_DISTANCE_CODEC_QUANTISE_H
#define SL_DISTANCE_CODEC_QUANTISE_H

#include "distance/kernels.h"

/* Returns the largest magnitude of x, NaN if x holds one. */
float sl_largest(const float *x, size_t n);

/* Writes x as signed codes, I8 or I16. Returns their unit: codes times unit come near x. The unit of zeros is 0. */
float sl_quantise(sl_codes codes, const float *x, size_t n, void *out);

/*
 * Makes n signed bytes of x, as a query over I8 rows.
 *
 * Parameters:
 *   x      in: the elements; out: what the bytes leave over of them
 *   scale  a factor of every score
 *   code   n bytes, which *out points to
 */
void sl_take_byte(float *x, size_t n, float scale, int8_t *code, sl_query_code *out);

/* The error |x - decoded| / |x| over many rows. Each thread sums its own; the sums are then merged. */
typedef struct sl_quant_error {
    double sum, max;
    size_t count; /* rows */
} sl_quant_error;

void sl_quant_error_merge(sl_quant_error *into, const sl_quant_error *from);

#endif
