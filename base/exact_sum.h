/* Exact sums of doubles (Neal 2015, "Fast exact summation using small and large superaccumulators", arXiv 1505.05571:
 * the small one).
 *
 * A sum does not depend on the order of its terms, or on how they are divided among threads or machines. */
#ifndef SL_BASE_EXACT_SUM_H
#define SL_BASE_EXACT_SUM_H

#include <stdint.h>

/* Chunk i counts units of 2^(32 i - 1075). */
#define SL_EXACT_CHUNKS 67

typedef struct sl_exact_sum {
    int64_t chunks[SL_EXACT_CHUNKS];
    uint64_t pending; /* additions since the last carry */
} sl_exact_sum;

/* Adds a finite number. */
void sl_exact_add(sl_exact_sum *sum, double value);
/* Adds a * b. Exact if both are below 1e150 and the product is 0 or above 1e-290. Beyond that the result still does not
 * depend on the order. */
void sl_exact_add_product(sl_exact_sum *sum, double a, double b);
/* Adds another sum. */
void sl_exact_merge(sl_exact_sum *sum, const sl_exact_sum *other);
/* Returns the sum as a double, wrong by less than a unit in the last place; infinite if it is too large. */
double sl_exact_value(const sl_exact_sum *sum);
/* Returns the sum divided by n > 0. It is finite even if the sum is too large for a double. */
double sl_exact_mean(const sl_exact_sum *sum, uint64_t n);
/* Returns the sum of squares of the deviations from the mean of n numbers. `sum` has the numbers, `squares` their
 * squares. */
double sl_exact_deviation(const sl_exact_sum *sum, const sl_exact_sum *squares, uint64_t n);

#endif
