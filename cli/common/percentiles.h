/* Latencies in two or three numbers. */
#ifndef CLI_COMMON_PERCENTILES_H
#define CLI_COMMON_PERCENTILES_H

#include <stddef.h>

/* Sorts the n values, at least one. *p50, *p99 and *p999 (99.9 %; may be NULL) get percentiles: the smallest value
 * that at least that part of the values does not exceed. */
void percentiles(float *values, size_t n, double *p50, double *p99, double *p999);

#endif
