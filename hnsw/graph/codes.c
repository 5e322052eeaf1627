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
    if (coarse) {
        SL_TRY(sl_coarse_init(&index->coarse, params->dim, params->metric));
        index->walk_codec = &index->coarse.codec;
    }
    if (params->refine == SL_REFINE_I16)
        SL_TRY(sl_codec_init(&index->refine_codec, params->dim, SL_METRIC_IP, SL_F32, SL_CODES_I16));
    index->refine = params->refine;
    sl_arrays_init(index);
    return SL_OK;
}

/* F32 and BF16 rows are the bare elements, the latter rounded up to 4 bytes; I16 rows are those of a codec. */
size_t sl_refine_width(const sl_index *index) {
    const size_t dim = index->codec.dim;
    switch (index->refine) {
    case SL_REFINE_F32:
        return dim * sizeof(float);
    case SL_REFINE_BF16:
        return sl_round_up(dim * sizeof(uint16_t), 4);
    case SL_REFINE_I16:
        return index->refine_codec.rows.pitch;
    case SL_REFINE_NONE:
        break;
    }
    return 0;
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
    const sl_array *projection = &index->arrays[SL_ARRAY_PROJECTION];
    if (!projection->at) {
        SL_TRY_GOTO(sl_mem_alloc(allocator, sl_array_bytes(index, SL_ARRAY_PROJECTION, 1), &block), done);
        sl_array_put(index, SL_ARRAY_PROJECTION, block, projection->width);
        sl_coarse_adopt(coarse, block);
    }
    if (is_due(index, end)) {
        const sl_coarse_vectors all = {.get = vector_of, .ctx = index, .n = end};
        SL_TRY_GOTO(sl_coarse_learn(coarse, allocator, &all, index->seed ^ 0x636f61727365u, threads, projection->at),
                    done);
        first = 0;
        sl_index_touch(index, projection->at, projection->width);
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
