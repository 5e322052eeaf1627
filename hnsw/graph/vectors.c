#include "hnsw/graph/vectors.h"

#include "base/prefetch.h"
#include "distance/codec/encode.h"
#include "distance/codec/encode4.h"
#include "hnsw/graph/ids.h"

sl_status sl_check_stride(const void *vectors, sl_dtype dtype, size_t dim, size_t stride) {
    size_t size = sl_dtype_size(dtype);
    if (stride && stride < dim * size)
        return sl_fail(SL_EINVAL, "stride of %zu bytes is less than a row of %zu", stride, dim * size);
    if ((uintptr_t)vectors % size || stride % size)
        return sl_fail(SL_EINVAL, "rows of %s must lie at multiples of %zu bytes; copy them", sl_dtype_name(dtype),
                       size);
    return SL_OK;
}

static sl_status check_type(const sl_graph *graph, sl_dtype dtype) {
    sl_dtype own = graph->codec.dtype;
    if (dtype == SL_F32 || (dtype == own && !sl_dtype_is_float(own))) return SL_OK;
    return sl_fail(SL_ETYPE, "vectors of this index are given as f32%s%s, not as %s",
                   sl_dtype_is_float(own) ? "" : " or ", sl_dtype_is_float(own) ? "" : sl_dtype_name(own),
                   sl_dtype_name(dtype));
}

void sl_refined_floats(const sl_graph *graph, uint32_t node, float *out) {
    const void *refined = sl_refine_row(graph, node);
    if (graph->refine == SL_REFINE_I16)
        sl_decode_row(&graph->refine_codec, refined, out);
    else if (graph->refine == SL_REFINE_BF16)
        sl_decode_residual(&graph->codec, sl_row(graph, node), refined, out);
    else
        sl_to_float(SL_F32, refined, out, graph->codec.dim);
}

void sl_coded_floats(const sl_graph *graph, uint32_t node, float *out) {
    if (graph->codec.codes == SL_CODES_I4)
        sl_decode_row4(&graph->codec, sl_row(graph, node), sl_rest_row(graph, node), out);
    else
        sl_decode_row(&graph->codec, sl_row(graph, node), out);
}

void sl_coded_prefetch(const sl_graph *graph, uint32_t node) {
    const sl_codec *codec = &graph->codec;
    sl_prefetch(sl_row(graph, node), codec->rows.size);
    if (codec->codes == SL_CODES_I4) sl_prefetch(sl_rest_row(graph, node), codec->rest.size);
}

void sl_vector_of(const sl_graph *graph, uint32_t node, sl_dtype dtype, void *out) {
    if (sl_has(graph, SL_ARRAY_REFINE))
        sl_refined_floats(graph, node, out);
    else if (sl_dtype_is_float(dtype))
        sl_coded_floats(graph, node, out);
    else
        sl_decode_native(&graph->codec, sl_row(graph, node), out);
}

/* Refuses an id with several vectors, because none of them stands for the id. */
static sl_status check_single(sl_index *index, const sl_graph *graph, uint64_t id) {
    sl_node_list found = {0};
    SL_TRY(sl_id_nodes(index, graph, id, &found));
    const size_t count = found.count;
    sl_node_list_free(&found, &graph->allocator);
    if (count <= 1) return SL_OK;
    return sl_fail(SL_EUNSUPPORTED, "id %llu has %zu vectors; get them with sl_index_get_all", (unsigned long long)id,
                   count);
}

/* Gets the vectors of at most GOT_AT_ONCE ids. */
enum { GOT_AT_ONCE = 256 };
static sl_status get_some(sl_index *index, const uint64_t *ids, size_t n, sl_dtype dtype, char *out) {
    const size_t bytes = index->graph.codec.dim * sl_dtype_size(dtype);
    uint32_t nodes[GOT_AT_ONCE];
    sl_reading reading;
    sl_status status = sl_ids_read(index, &reading, ids, n, nodes);
    for (size_t i = 0; i < n && status == SL_OK; i++) {
        if (nodes[i] == SL_NONE) status = sl_id_missing(ids[i]);
        if (status == SL_OK && sl_ids_repeat(reading.graph)) status = check_single(index, reading.graph, ids[i]);
        if (status == SL_OK) sl_vector_of(reading.graph, nodes[i], dtype, out + i * bytes);
    }
    sl_reading_end(&reading);
    return status;
}

sl_status sl_index_get(sl_index *index, const uint64_t *ids, size_t n, sl_dtype dtype, void *out) {
    if (!index || (n && (!ids || !out))) return sl_fail(SL_EINVAL, "index, ids or out is NULL");
    SL_TRY(check_type(&index->graph, dtype));
    const size_t bytes = index->graph.codec.dim * sl_dtype_size(dtype);
    for (size_t done = 0, some; done < n; done += some) {
        some = n - done < GOT_AT_ONCE ? n - done : GOT_AT_ONCE;
        SL_TRY(get_some(index, ids + done, some, dtype, (char *)out + done * bytes));
    }
    return SL_OK;
}

sl_status sl_index_get_all(sl_index *index, uint64_t id, sl_dtype dtype, void *out, size_t room, size_t *count) {
    if (!index || !count || (room && !out)) return sl_fail(SL_EINVAL, "index, count or out is NULL");
    SL_TRY(check_type(&index->graph, dtype));
    const size_t bytes = index->graph.codec.dim * sl_dtype_size(dtype);
    sl_node_list found = {0};
    sl_reading reading;
    sl_status status = sl_id_read_nodes(index, &reading, id, &found);
    if (status == SL_OK && !found.count) status = sl_id_missing(id);
    for (size_t i = 0; i < found.count && i < room && status == SL_OK; i++)
        sl_vector_of(reading.graph, found.nodes[i], dtype, (char *)out + i * bytes);
    sl_reading_end(&reading);
    if (status == SL_OK) *count = found.count;
    sl_node_list_free(&found, &index->graph.allocator);
    return status;
}
