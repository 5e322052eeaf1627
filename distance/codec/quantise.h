/* Quantises floats to integer codes of one scale, and measures the error. */
#ifndef SL_DISTANCE_CODEC_QUANTISE_H
#define SL_DISTANCE_CODEC_QUANTISE_H

#include "distance/kernels.h"

/* The rule that gives the range of codes of a vector. */
typedef struct sl_clip_rule {
    sl_clip clip; /* AUTO: the codes' own */
    double share; /* of QUANTILE */
} sl_clip_rule;

/* Returns the largest magnitude of x, NaN if x holds one. */
float sl_largest(const float *x, size_t n);

/* Returns the least magnitude that at most share * n elements exceed, rounded to whole elements. If that is 0, returns
 * the largest magnitude. x is finite. */
float sl_quantile(const float *x, size_t n, double share);

/* Quantises x to signed codes, I8 or I16. Returns their unit: codes times unit are near x. The unit of zeros is 0. */
float sl_quantise(sl_codes codes, sl_clip_rule rule, const float *x, size_t n, void *out);

/*
 * Splits x into n signed bytes, a query over I8 rows, and a rest.
 *
 * Parameters:
 *   x      in: the elements; out: the rest
 *   scale  a factor of every score
 *   code   n bytes, which *out points to
 */
void sl_split_byte(float *x, size_t n, float scale, int8_t *code, sl_query_code *out);

/* The error |x - decoded| / |x| over many rows. Each thread sums its own; the sums are merged at the end. */
typedef struct sl_quant_error {
    double sum, max;
    size_t count; /* rows */
} sl_quant_error;

/* Returns the error of one row. Sums of up to 2^23 are exact, so neither their order nor the number of threads changes
 * them. */
sl_quant_error sl_quant_error_of(double relative);
void sl_quant_error_merge(sl_quant_error *into, const sl_quant_error *from);

#endif
