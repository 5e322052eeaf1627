#include "distance/codec/encode.h"
#include "distance/codec/encode4.h"
#include "hnsw/graph/index.h"

sl_status sl_check_stride(const void *vectors, sl_dtype dtype, size_t dim, size_t stride) {
    size_t size = sl_dtype_size(dtype);
    if (stride && stride < dim * size)
        return sl_fail(SL_EINVAL, "stride of %zu bytes is less than a row of %zu", stride, dim * size);
    if ((uintptr_t)vectors % size || stride % size)
        return sl_fail(SL_EINVAL, "rows of %s must lie at multiples of %zu bytes; copy them", sl_dtype_name(dtype),
                       size);
    return SL_OK;
}

static sl_status check_type(const sl_index *index, sl_dtype dtype) {
    sl_dtype own = index->codec.dtype;
    if (dtype == SL_F32 || (dtype == own && !sl_dtype_is_float(own))) return SL_OK;
    return sl_fail(SL_ETYPE, "vectors of this index are given as f32%s%s, not as %s",
                   sl_dtype_is_float(own) ? "" : " or ", sl_dtype_is_float(own) ? "" : sl_dtype_name(own),
                   sl_dtype_name(dtype));
}

void sl_refined_floats(const sl_index *index, uint32_t node, float *out) {
    const void *refined = sl_refine_row(index, node);
    if (index->refine == SL_REFINE_I16)
        sl_decode_row(&index->refine_codec, refined, out);
    else if (index->refine == SL_REFINE_BF16)
        sl_decode_residual(&index->codec, sl_row(index, node), refined, out);
    else
        sl_to_float(SL_F32, refined, out, index->codec.dim);
}

void sl_coded_floats(const sl_index *index, uint32_t node, float *out) {
    if (index->codec.codes == SL_CODES_I4)
        sl_decode_row4(&index->codec, sl_row(index, node), sl_rest_row(index, node), out);
    else
        sl_decode_row(&index->codec, sl_row(index, node), out);
}

void sl_vector_of(const sl_index *index, uint32_t node, sl_dtype dtype, void *out) {
    if (sl_has(index, SL_ARRAY_REFINE))
        sl_refined_floats(index, node, out);
    else if (sl_dtype_is_float(dtype))
        sl_coded_floats(index, node, out);
    else
        sl_decode_native(&index->codec, sl_row(index, node), out);
}

sl_status sl_index_get(sl_index *index, const uint64_t *ids, size_t n, sl_dtype dtype, void *out) {
    if (!index || (n && (!ids || !out))) return sl_fail(SL_EINVAL, "index, ids or out is NULL");
    SL_TRY(check_type(index, dtype));
    size_t bytes = index->codec.dim * sl_dtype_size(dtype);
    for (size_t i = 0; i < n; i++) {
        uint32_t node;
        SL_TRY(sl_id_find(index, ids[i], &node));
        sl_vector_of(index, node, dtype, (char *)out + i * bytes);
    }
    return SL_OK;
}
