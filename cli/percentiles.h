/* Latencies in two numbers. */
#ifndef CLI_PERCENTILES_H
#define CLI_PERCENTILES_H

#include <stddef.h>

/* Sorts the n values, at least one: *p50 and *p99 are the smallest of them that at least this part do not exceed. */
void percentiles(float *values, size_t n, double *p50, double *p99);

#endif
