/* Sums over floats in double precision. The order of the additions is fixed, products of two floats are exact in double
 * precision, and nothing is fused. The result is therefore the same on every machine. */
#ifndef SL_DISTANCE_DOUBLE_H
#define SL_DISTANCE_DOUBLE_H

#include <stddef.h>

/* Returns the sum of a[i] * b[i]. */
double sl_dot_double(const float *a, const float *b, size_t n);

/* Returns the sum of (a[i] - b[i])^2. */
double sl_l2_double(const float *a, const float *b, size_t n);

#endif
