/* Sums over floats in double precision. */
#include "distance/double.h"

/* Eight sums side by side: a single chain of additions would wait for itself. */
#define DOUBLE_LANES 8

typedef enum term { TERM_PRODUCT, TERM_SQUARE } term;

static inline double term_of(term which, float a, float b) {
    if (which == TERM_PRODUCT) return (double)a * (double)b;
    double difference = (double)a - (double)b;
    return difference * difference;
}

static inline double sum_terms(term which, const float *a, const float *b, size_t n) {
    double sums[DOUBLE_LANES] = {0};
    size_t i = 0;
    for (; i + DOUBLE_LANES <= n; i += DOUBLE_LANES)
        for (size_t lane = 0; lane < DOUBLE_LANES; lane++)
            sums[lane] += term_of(which, a[i + lane], b[i + lane]);
    for (size_t lane = 0; i < n; i++, lane++)
        sums[lane] += term_of(which, a[i], b[i]);
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

double sl_dot_double(const float *a, const float *b, size_t n) {
    return sum_terms(TERM_PRODUCT, a, b, n);
}

double sl_l2_double(const float *a, const float *b, size_t n) {
    return sum_terms(TERM_SQUARE, a, b, n);
}
