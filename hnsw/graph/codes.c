#include "hnsw/graph/codes.h"

#include "base/thread.h"
#include "hnsw/graph/arrays.h"
#include "hnsw/graph/vectors.h"
#include "hnsw/graph/version.h"

#include <string.h>

/* Codes I4 have two forms. If 4 bits an element fit a cache line, a vector has a row of 4 bits and a row of the rest.
 * Longer vectors, and integers, have rows of their type's own codes, and coarse rows. */
sl_status sl_codes_init(sl_graph *graph, const sl_index_params *params) {
    sl_dtype dtype = sl_dtype_is_float(params->dtype) ? SL_F32 : params->dtype;
    sl_codes codes = params->codes;
    graph->codes = codes;
    /* sl_codec_init below reports wrong parameters. */
    int coarse = codes == SL_CODES_I4 && sl_coarse_wanted(params->dim, params->metric, dtype);
    if (coarse) codes = dtype == SL_I16 ? SL_CODES_I16 : SL_CODES_I8;
    SL_TRY(sl_codec_init(&graph->codec, params->dim, params->metric, dtype, codes));
    if (coarse) SL_TRY(sl_coarse_init(&graph->coarse, params->dim, params->metric));
    SL_TRY(sl_codec_clip(coarse ? &graph->coarse.codec : &graph->codec, params->clip, params->clip_share));
    if (params->refine == SL_REFINE_I16)
        SL_TRY(sl_codec_init(&graph->refine_codec, params->dim, SL_METRIC_IP, SL_F32, SL_CODES_I16));
    graph->refine = params->refine;
    sl_arrays_init(graph);
    return SL_OK;
}

static void decode_vector(const void *ctx, size_t node, float *out) {
    sl_coded_floats(ctx, (uint32_t)node, out);
}

/* Returns whether the projection must be learned: it is missing, or it came from a small sample and the index has grown
 * eightfold. */
static int is_projection_due(const sl_graph *graph, size_t n) {
    if (graph->n == 0) return 1;
    size_t learned = sl_coarse_learned(&graph->coarse);
    return learned < sl_coarse_sample(&graph->coarse) && n / 8 >= learned;
}

/* Bytes of a thread's scratch. */
static size_t scratch_bytes(const sl_graph *graph) {
    return sl_round_up(graph->codec.dim * sizeof(float), SL_CACHE_LINE) + sl_coarse_query_size(&graph->coarse);
}

size_t sl_codes_bytes(const sl_graph *graph, size_t n, size_t threads) {
    if (sl_codec_of_walks(graph) == &graph->codec) return 0;
    return threads * scratch_bytes(graph) + sl_coarse_learn_bytes(&graph->coarse, n);
}

/* Replaces an array that searches read, by zeros. They keep the old one. */
static sl_status renew_array(sl_index *index, sl_array_kind kind) {
    sl_graph *graph = &index->graph;
    const sl_allocator *allocator = sl_array_allocator(index, kind);
    const size_t bytes = sl_array_bytes(graph, kind, graph->capacity);
    void *old = graph->arrays[kind].at, *block;
    SL_TRY(sl_mem_alloc(allocator, bytes, &block));
    sl_array_put(graph, kind, block, graph->arrays[kind].width);
    sl_version_release(index, allocator, old, bytes);
    return SL_OK;
}

/* Gives an index that searches read other coarse rows and another projection to write. If the call fails, the old ones
 * stay in use, but for the projection: it is copied. A file is written in place. */
static sl_status renew_coarse(sl_index *index) {
    sl_graph *graph = &index->graph;
    if (index->writer || !sl_version_is_read(index)) return SL_OK;
    const sl_array projection = graph->arrays[SL_ARRAY_PROJECTION], rows = graph->arrays[SL_ARRAY_COARSE];
    SL_TRY(renew_array(index, SL_ARRAY_PROJECTION));
    memcpy(graph->arrays[SL_ARRAY_PROJECTION].at, projection.at, projection.width);
    sl_coarse_set_projection(&graph->coarse, graph->arrays[SL_ARRAY_PROJECTION].at);
    SL_TRY(renew_array(index, SL_ARRAY_COARSE));
    memcpy(graph->arrays[SL_ARRAY_COARSE].at, rows.at, graph->n * rows.step);
    return SL_OK;
}

/* Makes the coarse rows of nodes [first, first + n), or of n that `places` lists. */
static void encode_coarse(sl_index *index, const sl_new_rows *rows, uint8_t *scratch, size_t threads) {
    const sl_coarse *coarse = &index->graph.coarse;
    const size_t n = rows->places ? rows->n : rows->appended, own = scratch_bytes(&index->graph);
    const size_t floats = sl_round_up(index->graph.codec.dim * sizeof(float), SL_CACHE_LINE);
    (void)threads; /* unread without OpenMP */
#pragma omp parallel for schedule(static) num_threads((int)threads) if (threads > 1)
    for (size_t i = 0; i < n; i++) {
        const uint32_t node = rows->places ? rows->places[i] : (uint32_t)(rows->first + i);
        uint8_t *mine = scratch + sl_thread_number() * own, *row = sl_walk_row(&index->graph, node);
        float *x = (float *)(void *)mine;
        sl_coded_floats(&index->graph, node, x);
        sl_coarse_encode(coarse, index->graph.kernels, x, mine + floats, row);
        sl_index_touch(index, row, coarse->codec.rows.pitch);
    }
}

sl_status sl_codes_extend(sl_index *index, const sl_new_rows *rows, size_t threads) {
    const sl_allocator *allocator = &index->graph.allocator;
    sl_coarse *coarse = &index->graph.coarse;
    const size_t end = rows->first + rows->appended;
    if (sl_codec_of_walks(&index->graph) == &index->graph.codec) return SL_OK;
    const size_t own = scratch_bytes(&index->graph);
    const sl_new_rows all_rows = {.appended = end};
    void *scratch, *block;
    SL_TRY(sl_mem_alloc(allocator, threads * own, &scratch));
    sl_status status = SL_OK;
    const sl_array *projection = &index->graph.arrays[SL_ARRAY_PROJECTION];
    if (!projection->at) {
        SL_TRY_GOTO(sl_mem_alloc(allocator, sl_array_bytes(&index->graph, SL_ARRAY_PROJECTION, 1), &block), done);
        sl_array_put(&index->graph, SL_ARRAY_PROJECTION, block, projection->width);
        sl_coarse_set_projection(coarse, block);
    }
    if (is_projection_due(&index->graph, end)) {
        const sl_coarse_vectors all = {.get = decode_vector, .ctx = &index->graph, .n = end};
        const uint64_t seed = index->graph.seed ^ 0x636f61727365u;
        SL_TRY_GOTO(renew_coarse(index), done);
        SL_TRY_GOTO(sl_coarse_learn(coarse, allocator, &all, seed, threads, projection->at), done);
        rows = &all_rows;
        sl_index_touch(index, projection->at, projection->width);
    }
    encode_coarse(index, rows, scratch, threads);
done:
    sl_mem_free(allocator, scratch, threads * own);
    return status;
}

int sl_row_is_finite(const sl_graph *graph, uint32_t node) {
    const sl_codec *codec = &graph->codec;
    const uint8_t *row = sl_row(graph, node);
    /* The norm is in a node's last row. */
    const uint8_t *last = codec->rest.pitch ? sl_rest_row(graph, node) : row;
    return sl_field_is_finite(row, codec->rows.factor) &&
           (!codec->rows.bias || sl_field_is_finite(row, codec->rows.bias)) &&
           (!codec->norm || sl_field_is_finite(last, codec->norm)) &&
           (!codec->rest.pitch || sl_field_is_finite(last, codec->rest.factor)) &&
           sl_field_is_finite(sl_walk_row(graph, node), sl_codec_of_walks(graph)->rows.factor) &&
           (!sl_codec_of_walks(graph)->rows.bias ||
            sl_field_is_finite(sl_walk_row(graph, node), sl_codec_of_walks(graph)->rows.bias));
}
