#include "base/thread.h"
#include "hnsw/graph/index.h"

/* Codes I4 are rows of 4 bits and their rest where the 4 bits fit a cache line; otherwise, and for integers, the rows
 * of the type's own codes with coarse ones beside them. */
sl_status sl_codes_init(sl_index *index, const sl_index_params *params) {
    sl_dtype dtype = sl_dtype_is_float(params->dtype) ? SL_F32 : params->dtype;
    sl_codes codes = params->codes;
    index->codes = codes;
    index->walk_codec = &index->codec;
    /* Also says what is wrong with the parameters. */
    int coarse = codes == SL_CODES_I4 && sl_coarse_wanted(params->dim, params->metric, dtype);
    if (coarse) codes = dtype == SL_I16 ? SL_CODES_I16 : SL_CODES_I8;
    SL_TRY(sl_codec_init(&index->codec, params->dim, params->metric, dtype, codes));
    index->row_pitch = index->codec.rows.pitch;
    index->rest_pitch = index->codec.rest.pitch;
    if (!coarse) return SL_OK;
    SL_TRY(sl_coarse_init(&index->coarse, params->dim, params->metric));
    index->walk_codec = &index->coarse.codec;
    return SL_OK;
}

size_t sl_coarse_bytes(const sl_index *index, size_t n) {
    size_t pitch = index->coarse.codec.rows.pitch;
    return pitch ? n * pitch + SL_ROW_STEP : 0;
}

size_t sl_projection_bytes(const sl_index *index) {
    return index->coarse.codec.rows.pitch ? sl_coarse_projection_size(&index->coarse) + SL_ROW_STEP : 0;
}

static void vector_of(const void *ctx, size_t node, float *out) {
    sl_coded_floats(ctx, (uint32_t)node, out);
}

/* When there are many more vectors than a small sample was taken from. */
static int is_due(const sl_index *index, size_t n) {
    if (index->n == 0) return 1;
    size_t learned = sl_coarse_learned(&index->coarse);
    return learned < sl_coarse_sample(&index->coarse) && n / 8 >= learned;
}

sl_status sl_codes_extend(sl_index *index, size_t first, size_t n, size_t threads) {
    const sl_allocator *allocator = &index->allocator;
    sl_coarse *coarse = &index->coarse;
    size_t floats = sl_round_up(index->codec.dim * sizeof(float), SL_CACHE_LINE), end = first + n;
    if (index->walk_codec == &index->codec) return SL_OK;
    size_t own = floats + sl_coarse_query_size(coarse);
    void *scratch, *block;
    SL_TRY(sl_mem_alloc(allocator, threads * own, &scratch));
    sl_status status = SL_OK;
    if (!index->projection) {
        SL_TRY_GOTO(sl_mem_alloc(allocator, sl_projection_bytes(index), &block), done);
        index->projection = block;
        sl_coarse_adopt(coarse, block);
    }
    if (is_due(index, end)) {
        SL_TRY_GOTO(sl_coarse_learn(coarse, allocator, vector_of, index, end, index->seed ^ 0x636f61727365u, threads,
                                    index->projection),
                    done);
        first = 0;
        sl_index_touch(index, index->projection, sl_coarse_projection_size(coarse));
    }
#pragma omp parallel for schedule(static) num_threads((int)threads) if (threads > 1)
    for (size_t node = first; node < end; node++) {
        uint8_t *mine = (uint8_t *)scratch + sl_thread_number() * own;
        float *x = (float *)(void *)mine;
        sl_coded_floats(index, (uint32_t)node, x);
        sl_coarse_encode(coarse, index->kernels, x, mine + floats, sl_walk_row(index, (uint32_t)node));
    }
    sl_index_touch(index, sl_walk_row(index, (uint32_t)first), (end - first) * coarse->codec.rows.pitch);
done:
    sl_mem_free(allocator, scratch, threads * own);
    return status;
}
