/* Conversions between element types. */
#ifndef SL_DISTANCE_CODEC_CONVERT_H
#define SL_DISTANCE_CODEC_CONVERT_H

#include "shortlist.h"

static inline int sl_dtype_is_float(sl_dtype dtype) {
    return dtype == SL_F32 || dtype == SL_F16 || dtype == SL_BF16;
}

/* Converts n elements of any type to floats. `src` needs no alignment. */
void sl_to_float(sl_dtype dtype, const void *src, float *dst, size_t n);

/* Converts n floats to F32, F16 or BF16, rounded to nearest, ties to even. */
void sl_from_float(sl_dtype dtype, const float *src, void *dst, size_t n);

#endif
