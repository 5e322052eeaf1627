/* Shared by the files of all tiers: four-lane vectors, in which scores are finished, and the declarations of the
 * tables. The vectors are the compiler's, so that scores are the same everywhere. */
#ifndef SL_DISTANCE_LANES_H
#define SL_DISTANCE_LANES_H

#include "base/inline.h"
#include "base/prefetch.h"
#include "distance/kernels.h"

#include <string.h>

typedef float f4 __attribute__((vector_size(16)));
typedef int32_t i4 __attribute__((vector_size(16)));

static AI float load_float(const void *from) {
    float value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Returns the largest magnitude. Magnitudes order as their bits do, and compilers vectorise the maximum of integers. */
static AI float largest_of(const float *x, size_t n) {
    int32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= INT32_MAX;
        most = bits > most ? bits : most;
    }
    float value;
    memcpy(&value, &most, sizeof value);
    return value;
}

/* A table for each tier; table.c knows which of them a build holds. */
extern const sl_kernels sl_kernels_scalar;
extern const sl_kernels sl_kernels_avx2;
extern const sl_kernels sl_kernels_avxvnni;
extern const sl_kernels sl_kernels_avx512bw;
extern const sl_kernels sl_kernels_avx512vnni;
extern const sl_kernels sl_kernels_neon;
extern const sl_kernels sl_kernels_amxint8;

#endif
