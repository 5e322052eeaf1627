#include "cli/common/percentiles.h"

#include <stdlib.h>

static int compare_floats(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double percentile(const float *sorted, size_t n, double part) {
    size_t rank = (size_t)(part * (double)n);
    if ((double)rank < part * (double)n) rank++;
    return (double)sorted[rank ? rank - 1 : 0];
}

void percentiles(float *values, size_t n, double *p50, double *p99, double *p999) {
    qsort(values, n, sizeof *values, compare_floats);
    *p50 = percentile(values, n, 0.50);
    *p99 = percentile(values, n, 0.99);
    if (p999) *p999 = percentile(values, n, 0.999);
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double *values, size_t n) {
    qsort(values, n, sizeof *values, compare_doubles);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}
