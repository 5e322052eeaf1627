#include "distance/codec/vector_check.h"

#include "base/status.h"
#include "distance/double.h"

#include <math.h>

sl_status sl_codec_accepts(const sl_codec *codec, sl_dtype dtype) {
    if (!sl_dtype_size(dtype)) return sl_fail(SL_ETYPE, "element type %d is none of sl_dtype", (int)dtype);
    if (sl_dtype_is_float(codec->dtype)) {
        if (sl_dtype_is_float(dtype)) return SL_OK;
        return sl_fail(SL_ETYPE, "the index takes f32, f16 or bf16 vectors, not %s; convert them first",
                       sl_dtype_name(dtype));
    }
    if (dtype == codec->dtype) return SL_OK;
    return sl_fail(SL_ETYPE, "the index takes %s vectors, not %s", sl_dtype_name(codec->dtype), sl_dtype_name(dtype));
}

/* Between these lengths, squares and squared distances of two vectors neither overflow a float nor vanish among its
 * subnormals. */
#define MAX_LENGTH 9e18
#define MIN_LENGTH 1e-18

static sl_status check_length(sl_metric metric, double norm2) {
    if (norm2 > MAX_LENGTH * MAX_LENGTH)
        return sl_fail(SL_EVALUE, "length is %.3g, too large for single precision; scale the vectors to below %.0e",
                       sqrt(norm2), MAX_LENGTH);
    if (norm2 >= MIN_LENGTH * MIN_LENGTH || (norm2 == 0 && metric != SL_METRIC_COSINE)) return SL_OK;
    if (norm2 == 0) return sl_fail(SL_EVALUE, "zero vector, which has no direction for a cosine; leave it out");
    return sl_fail(SL_EVALUE, "length is %.3g, too small for single precision; scale the vectors to above %.0e",
                   sqrt(norm2), MIN_LENGTH);
}

static sl_status check_floats(sl_metric metric, sl_dtype dtype, const void *vector, size_t dim) {
    float block[256];
    double norm2 = 0;
    for (size_t done = 0, count; done < dim; done += count) {
        count = dim - done < 256 ? dim - done : 256;
        sl_to_float(dtype, (const uint8_t *)vector + done * sl_dtype_size(dtype), block, count);
        norm2 += sl_dot_double(block, block, count);
        if (isfinite(norm2)) continue;
        /* Squares of finite floats do not overflow a double. One of these elements is therefore not finite. */
        size_t i = 0;
        while (i + 1 < count && isfinite(block[i]))
            i++;
        return sl_fail(SL_EVALUE, "element %zu is %s; replace it or leave the vector out", done + i,
                       isnan(block[i]) ? "not a number" : "infinite");
    }
    return check_length(metric, norm2);
}

sl_status sl_vector_check(sl_metric metric, sl_dtype dtype, const void *vector, size_t dim) {
    if (sl_dtype_is_float(dtype)) return check_floats(metric, dtype, vector, dim);
    if (metric != SL_METRIC_COSINE) return SL_OK;
    const uint8_t *bytes = vector;
    for (size_t i = 0, size = dim * sl_dtype_size(dtype); i < size; i++)
        if (bytes[i]) return SL_OK;
    return check_length(metric, 0);
}
