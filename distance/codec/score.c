/* The score of two vectors, as exact as their type allows. */
#include "distance/codec/score.h"

#include "base/status.h"
#include "distance/codec/vector_check.h"
#include "distance/double.h"

#include <math.h>

/* The sums that metrics need. */
typedef struct sums {
    double ab, aa, bb, l2;
} sums;

static sums sum_floats(sl_metric metric, sl_dtype dtype, const void *a, const void *b, size_t dim) {
    sums total = {0};
    float x[256], y[256];
    size_t size = sl_dtype_size(dtype);
    for (size_t done = 0, count; done < dim; done += count) {
        count = dim - done < 256 ? dim - done : 256;
        sl_to_float(dtype, (const uint8_t *)a + done * size, x, count);
        sl_to_float(dtype, (const uint8_t *)b + done * size, y, count);
        if (metric == SL_METRIC_L2) {
            total.l2 += sl_l2_double(x, y, count);
            continue;
        }
        total.ab += sl_dot_double(x, y, count);
        if (metric != SL_METRIC_COSINE) continue;
        total.aa += sl_dot_double(x, x, count);
        total.bb += sl_dot_double(y, y, count);
    }
    return total;
}

static int64_t integer_dot(const sl_kernels *kernels, sl_dtype dtype, const void *a, const void *b, size_t dim) {
    if (dtype == SL_I8) return kernels->dot_i8(a, b, dim);
    return dtype == SL_U8 ? kernels->dot_u8(a, b, dim) : kernels->dot_i16(a, b, dim);
}

static int64_t integer_l2(const sl_kernels *kernels, sl_dtype dtype, const void *a, const void *b, size_t dim) {
    if (dtype == SL_I8) return kernels->l2_i8(a, b, dim);
    return dtype == SL_U8 ? kernels->l2_u8(a, b, dim) : kernels->l2_i16(a, b, dim);
}

/* The sums are below 2^49, so that doubles hold them exactly. */
static sums sum_integers(const sl_kernels *kernels, sl_metric metric, sl_dtype dtype, const void *a, const void *b,
                         size_t dim) {
    sums total = {0};
    if (metric == SL_METRIC_L2) {
        total.l2 = (double)integer_l2(kernels, dtype, a, b, dim);
        return total;
    }
    total.ab = (double)integer_dot(kernels, dtype, a, b, dim);
    if (metric == SL_METRIC_COSINE) {
        total.aa = (double)integer_dot(kernels, dtype, a, a, dim);
        total.bb = (double)integer_dot(kernels, dtype, b, b, dim);
    }
    return total;
}

double sl_score_pair(const sl_kernels *kernels, sl_metric metric, sl_dtype dtype, const void *a, const void *b,
                     size_t dim) {
    sums total = sl_dtype_is_float(dtype) ? sum_floats(metric, dtype, a, b, dim)
                                          : sum_integers(kernels, metric, dtype, a, b, dim);
    if (metric == SL_METRIC_L2) return total.l2;
    if (metric == SL_METRIC_IP) return total.ab;
    /* Equal vectors give exactly 1, because the root of a square is exact. */
    return total.ab / sqrt(total.aa * total.bb);
}

sl_status sl_score(sl_metric metric, sl_dtype dtype, const void *a, const void *b, size_t dim, double *score) {
    if (!a || !b || !score) return sl_fail(SL_EINVAL, "sl_score: %s is NULL", !a ? "a" : !b ? "b" : "score");
    if ((unsigned)metric > SL_METRIC_L2)
        return sl_fail(SL_EINVAL, "sl_score: metric %d is none of sl_metric", (int)metric);
    if (!sl_dtype_size(dtype)) return sl_fail(SL_ETYPE, "sl_score: element type %d is none of sl_dtype", (int)dtype);
    if (dim == 0) return sl_fail(SL_EINVAL, "sl_score: dim is 0; it must be 1 to %u", SL_MAX_DIM);
    if (dim > SL_MAX_DIM) return sl_fail(SL_ELIMIT, "sl_score: dim is %zu; it must be 1 to %u", dim, SL_MAX_DIM);
    sl_status status = sl_vector_check(metric, dtype, a, dim);
    if (status != SL_OK) return sl_fail_in(status, "sl_score: a");
    status = sl_vector_check(metric, dtype, b, dim);
    if (status != SL_OK) return sl_fail_in(status, "sl_score: b");
    *score = sl_score_pair(sl_kernels_best(), metric, dtype, a, b, dim);
    return SL_OK;
}
