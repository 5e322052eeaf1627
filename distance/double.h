/* Sums over floats in double precision. The order of the additions is fixed, products of two floats are exact in
 * double, and nothing is fused, so that the result is the same on every machine. */
#ifndef SL_DISTANCE_DOUBLE_H
#define SL_DISTANCE_DOUBLE_H

#include <stddef.h>

/* Sum of a[i] * b[i]. */
double sl_dot_double(const float *a, const float *b, size_t n);

/* Sum of (a[i] - b[i])^2. */
double sl_l2_double(const float *a, const float *b, size_t n);

#endif
