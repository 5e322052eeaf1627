/* Latencies in two or three numbers, and medians. */
#ifndef CLI_COMMON_PERCENTILES_H
#define CLI_COMMON_PERCENTILES_H

#include <stddef.h>

/* Sorts the n values and computes percentiles. n is at least 1. p999 (99.9 %) may be NULL. A percentile is the smallest
 * value that is at least as large as that share of the values. */
void percentiles(float *values, size_t n, double *p50, double *p99, double *p999);

/* Sorts the n values and returns their median. n is at least 1. */
double median(double *values, size_t n);

#endif
