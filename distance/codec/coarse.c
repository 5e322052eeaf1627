#include "distance/codec/coarse.h"

#include "distance/codec/encode4.h"
#include "distance/double.h"

#include <math.h>
#include <string.h>

/* Bytes of levels, beside a factor and a bias, in one cache line and in two. Vectors of up to MOST_OF_ONE elements get
 * one line; longer vectors would lose too much in one. */
enum { ONE_LINE = SL_CACHE_LINE - 8, TWO_LINES = 2 * SL_CACHE_LINE - 8, MOST_OF_ONE = 160, MOST = 2 * TWO_LINES };

int sl_coarse_wanted(size_t dim, sl_metric metric, sl_dtype dtype) {
    sl_codec codec;
    if (dim > SL_COARSE_MAX_DIM) return 0;
    if (!sl_dtype_is_float(dtype)) return 1;
    return sl_codec_init(&codec, dim, metric, dtype, SL_CODES_I4) == SL_OK && codec.rows.pitch > SL_CACHE_LINE;
}

sl_status sl_coarse_init(sl_coarse *coarse, size_t dim, sl_metric metric) {
    size_t most = 2 * (dim > MOST_OF_ONE ? TWO_LINES : ONE_LINE), own = dim < most ? dim : most;
    *coarse = (sl_coarse){.metric = metric};
    SL_TRY(sl_codec_init(&coarse->matrix, dim, SL_METRIC_IP, SL_F32, SL_CODES_I8));
    SL_TRY(sl_codec_init(&coarse->codec, own, SL_METRIC_L2, SL_F32, SL_CODES_I4));
    coarse->codec.rows.pitch = coarse->codec.rows.size = coarse->codec.rows.width;
    return SL_OK;
}

static size_t matrix_size(const sl_coarse *coarse) {
    return coarse->codec.dim * coarse->matrix.rows.pitch;
}

size_t sl_coarse_projection_size(const sl_coarse *coarse) {
    return matrix_size(coarse) + coarse->matrix.dim * sizeof(float) + sizeof(uint32_t);
}

void sl_coarse_set_projection(sl_coarse *coarse, const uint8_t *projection) {
    coarse->matrix.rows.base = projection;
    coarse->mean = (const float *)(const void *)(projection + matrix_size(coarse));
}

uint32_t sl_coarse_learned(const sl_coarse *coarse) {
    uint32_t learned;
    memcpy(&learned, coarse->mean + coarse->matrix.dim, sizeof learned);
    return learned;
}

int sl_coarse_is_finite(const sl_coarse *coarse) {
    for (size_t i = 0; i < coarse->matrix.dim; i++)
        if (!isfinite(coarse->mean[i])) return 0;
    const sl_code_rows *rows = &coarse->matrix.rows;
    for (size_t i = 0; i < coarse->codec.dim; i++)
        if (!sl_field_is_finite(rows->base + i * rows->pitch, rows->factor)) return 0;
    return 1;
}

size_t sl_coarse_query_size(const sl_coarse *coarse) {
    return coarse->matrix.rows.width + sl_query4_size(&coarse->codec) / 2;
}

/* Replaces the first elements of x by its projection. */
static void project(const sl_coarse *coarse, const sl_kernels *kernels, float *x, void *buffer) {
    const sl_code_rows *rows = &coarse->matrix.rows;
    size_t dim = coarse->matrix.dim;
    uint32_t ids[MOST];
    sl_query_code code;
    for (uint32_t i = 0; i < coarse->codec.dim; i++)
        ids[i] = i;
    sl_split_byte(x, dim, 1, buffer, &code);
    memset((uint8_t *)buffer + dim, 0, rows->width - dim);
    /* The processor itself sees that the rows are contiguous. Prefetching them took a third of the time. */
    kernels->score[SL_CODES_I8](rows, &code, ids, coarse->codec.dim, 0, x);
}

/* Normalises x under cosine, and returns |x|^2. An x that is not finite, which only a damaged file has, becomes
 * zero. */
static double normalise(const sl_coarse *coarse, float *x) {
    size_t dim = coarse->matrix.dim;
    double norm2 = sl_dot_double(x, x, dim);
    if (!isfinite(norm2)) memset(x, 0, dim * sizeof *x);
    if (coarse->metric != SL_METRIC_COSINE) return norm2;
    float scale = norm2 > 0 ? (float)(1 / sqrt(norm2)) : 0;
    for (size_t i = 0; i < dim; i++)
        x[i] *= scale;
    return norm2;
}

static void subtract_mean(const sl_coarse *coarse, float *x) {
    for (size_t i = 0; i < coarse->matrix.dim; i++)
        x[i] -= coarse->mean[i];
}

void sl_coarse_encode(const sl_coarse *coarse, const sl_kernels *kernels, float *x, void *buffer, uint8_t *row) {
    size_t dim = coarse->matrix.dim;
    (void)normalise(coarse, x);
    subtract_mean(coarse, x);
    float bias = 0;
    if (coarse->metric == SL_METRIC_L2) bias = (float)(-0.5 * sl_dot_double(x, x, dim));
    if (coarse->metric == SL_METRIC_COSINE) bias = (float)sl_dot_double(coarse->mean, x, dim);
    project(coarse, kernels, x, buffer);
    /* A damaged projection may give any numbers. */
    if (!isfinite(sl_largest(x, coarse->codec.dim))) memset(x, 0, coarse->codec.dim * sizeof *x);
    (void)sl_encode_levels(&coarse->codec, x, row);
    sl_field_put(row, coarse->codec.rows.bias, bias);
}

void sl_coarse_encode_query(const sl_coarse *coarse, const sl_kernels *kernels, float *x, void *buffer,
                            sl_query_code *out, double *norm2, float *origin) {
    size_t dim = coarse->matrix.dim;
    *norm2 = normalise(coarse, x);
    if (coarse->metric != SL_METRIC_L2) {
        double mean = sl_dot_double(coarse->mean, x, dim);
        *origin = (float)(coarse->metric == SL_METRIC_COSINE ? 1 - mean : -mean);
        if (coarse->metric == SL_METRIC_COSINE) subtract_mean(coarse, x);
    } else {
        subtract_mean(coarse, x);
        *origin = (float)(0.5 * sl_dot_double(x, x, dim));
    }
    project(coarse, kernels, x, buffer);
    sl_encode_query_levels(&coarse->codec, x, (uint8_t *)buffer + coarse->matrix.rows.width, out);
    out->bias_scale = 1;
}
