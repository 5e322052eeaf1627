/* Shared by the checks of kernels: counting, random values, guarded memory. */
#ifndef SL_TESTS_KERNEL_VALUES_H
#define SL_TESTS_KERNEL_VALUES_H

#include "tests/distance/kernel_checks.h"

/* Counts checks that hold and checks that fail, and notes the first failure. */
void expect(check_count *count, int holds, const char *format, ...) __attribute__((format(printf, 3, 4)));

uint64_t random_bits(void);
/* From -1 to 1. */
float random_float(void);
/* Returns a number, sometimes an extreme one or none at all. */
float any_score(void);

/* For qsort: the greatest first. */
int falling(const void *a, const void *b);

/* Allocates memory whose last byte lies before a page that no one may touch. */
typedef struct guarded {
    uint8_t *base, *end;
    size_t mapped;
} guarded;
guarded guarded_new(size_t size);
void guarded_free(guarded *g);

#endif
