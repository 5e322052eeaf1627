/* Common parts of the makers of synthetic data: numbers that are the same bytes on every machine, and arguments. */
#ifndef SL_TOOLS_DRAW_H
#define SL_TOOLS_DRAW_H

#include "base/random.h"

#include <errno.h>
#include <stdlib.h>

/* Normal to the eye: the sum of four 16-bit uniforms, scaled to variance 1. Sums of integers are the same everywhere,
 * which no libm promises of its logarithm. */
static inline float normal_at(uint64_t seed, uint64_t counter) {
    uint64_t bits = sl_random_at(seed, counter);
    int64_t sum = (int64_t)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
    return (float)(sum - 2 * 65535) * (1.7320508f / 65536.0f);
}

/* About e^x, as (1 + x/1024)^1024: multiplications only, for the same reason. */
static inline float grow(float x) {
    double power = 1.0 + (double)x / 1024.0;
    for (int i = 0; i < 10; i++)
        power *= power;
    return (float)power;
}

static inline int parse_number(const char *text, unsigned long long max, unsigned long long *out) {
    char *end = NULL;
    errno = 0;
    if (*text < '0' || *text > '9') return 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && *out <= max;
}

#endif
