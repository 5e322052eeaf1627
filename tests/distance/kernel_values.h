/* Shared by the checks of kernels: counting, random values, guarded memory. */
#ifndef SL_TESTS_KERNEL_VALUES_H
#define SL_TESTS_KERNEL_VALUES_H

#include "tests/distance/kernel_checks.h"

/* Counts what holds and what does not; of the latter the first is written down. */
void expect(check_count *count, int holds, const char *format, ...) __attribute__((format(printf, 3, 4)));

uint64_t random_bits(void);
/* From -1 to 1. */
float random_float(void);
/* Now and then an end of the numbers, or none. */
float any_score(void);

/* For qsort: the greatest first. */
int falling(const void *a, const void *b);

/* Memory whose last byte lies before a page that cannot be touched. */
typedef struct guarded {
    uint8_t *base, *end;
    size_t mapped;
} guarded;
guarded guarded_new(size_t size);
void guarded_free(guarded *g);

#endif
