#include "hnsw/search/exact.h"

#include "base/failure.h"
#include "base/params.h"
#include "distance/codec/encode.h"
#include "distance/codec/score.h"
#include "distance/codec/vector_check.h"
#include "hnsw/graph/index.h"
#include "hnsw/graph/vectors.h"
#include "hnsw/search/score_block.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Rows are encoded in blocks that stay in a second-level cache while every query scans them. */
enum { BLOCK_BYTES = 512 * 1024, CHUNK = 128 };

struct sl_exact {
    sl_allocator allocator;
    const sl_kernels *kernels;
    sl_exact_params params;
    sl_codec codec;
    size_t nq, block_rows;
    uint8_t *queries; /* rows without gaps, in the caller's type */
    uint8_t *codes;   /* codes of the queries, which kernels read */
    sl_query_code *query_codes;
    float *query_norm2;
    sl_top_entry *entries; /* k entries per query */
    size_t *sizes;         /* each query's number of entries so far */
    uint8_t *block;        /* encoded rows */
    float *floats;         /* dim floats per thread */
    size_t threads;
};

void sl_exact_params_init_sized(sl_exact_params *params, size_t struct_size) {
    const sl_exact_params mine = {.struct_size = sizeof mine, .metric = SL_METRIC_COSINE, .dtype = SL_F32};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

static size_t query_bytes(const sl_exact *exact) {
    return exact->params.dim * sl_dtype_size(exact->params.dtype);
}

void sl_exact_free(sl_exact *exact) {
    if (!exact) return;
    sl_allocator allocator = exact->allocator;
    size_t nq = exact->nq;
    sl_mem_free(&allocator, exact->queries, nq * query_bytes(exact));
    sl_mem_free(&allocator, exact->codes, nq * sl_query_size(&exact->codec));
    SL_FREE_ARRAY(&allocator, exact->query_codes, nq);
    SL_FREE_ARRAY(&allocator, exact->query_norm2, nq);
    SL_FREE_ARRAY(&allocator, exact->entries, nq * exact->params.k);
    SL_FREE_ARRAY(&allocator, exact->sizes, nq);
    sl_mem_free(&allocator, exact->block, sl_codec_rows_size(&exact->codec, exact->block_rows));
    SL_FREE_ARRAY(&allocator, exact->floats, exact->threads * exact->params.dim);
    SL_FREE(&allocator, exact);
}

static sl_status alloc_arrays(sl_exact *exact) {
    const sl_allocator *allocator = &exact->allocator;
    size_t nq = exact->nq, bytes;
    void *block;
    if (!sl_mul(nq, exact->params.k, &bytes) || !sl_mul(bytes, sizeof *exact->entries, &bytes) ||
        !sl_mul(nq, sl_query_size(&exact->codec), &bytes))
        return sl_fail(SL_ENOMEM, "%zu queries with k %zu do not fit the address space", nq, exact->params.k);
    SL_TRY(sl_mem_alloc(allocator, nq * query_bytes(exact), &block));
    exact->queries = block;
    SL_TRY(sl_mem_alloc(allocator, nq * sl_query_size(&exact->codec), &block));
    exact->codes = block;
    SL_TRY(sl_mem_alloc(allocator, nq * sizeof *exact->query_codes, &block));
    exact->query_codes = block;
    SL_TRY(sl_mem_alloc(allocator, nq * sizeof *exact->query_norm2, &block));
    exact->query_norm2 = block;
    SL_TRY(sl_mem_alloc(allocator, nq * exact->params.k * sizeof *exact->entries, &block));
    exact->entries = block;
    SL_TRY(sl_mem_alloc(allocator, nq * sizeof *exact->sizes, &block));
    exact->sizes = block;
    SL_TRY(sl_mem_alloc(allocator, sl_codec_rows_size(&exact->codec, exact->block_rows), &block));
    exact->block = block;
    exact->codec.rows.base = block;
    SL_TRY(sl_mem_alloc(allocator, exact->threads * exact->params.dim * sizeof(float), &block));
    exact->floats = block;
    return SL_OK;
}

static sl_status copy_queries(sl_exact *exact, const uint8_t *queries, size_t stride) {
    const sl_exact_params *p = &exact->params;
    size_t bytes = query_bytes(exact), code_bytes = sl_query_size(&exact->codec);
    if (stride == 0) stride = bytes;
    for (size_t q = 0; q < exact->nq; q++) {
        sl_status status = sl_vector_check(p->metric, p->dtype, queries + q * stride, p->dim);
        if (status != SL_OK) return sl_fail_in(status, "query %zu", q);
        memcpy(exact->queries + q * bytes, queries + q * stride, bytes);
        sl_encode_query(&exact->codec, queries + q * stride, p->dtype, exact->codes + q * code_bytes, exact->floats,
                        &exact->query_codes[q], &exact->query_norm2[q]);
    }
    return SL_OK;
}

static sl_status check_params(const sl_exact_params *p) {
    if (p->k == 0) return sl_fail(SL_EINVAL, "k is 0; give at least 1");
    if ((unsigned)p->dtype > SL_I16) return sl_fail(SL_EINVAL, "dtype %d is unknown", (int)p->dtype);
    return SL_OK;
}

sl_status sl_exact_create(const sl_exact_params *params, const void *queries, size_t nq, size_t stride,
                          sl_exact **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    sl_exact_params mine;
    sl_exact_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_exact_params_init"));
    SL_TRY(check_params(&mine));
    if (nq && !queries) return sl_fail(SL_EINVAL, "queries is NULL");
    sl_allocator allocator = sl_allocator_of(mine.allocator);
    void *block;
    SL_TRY(sl_mem_alloc(&allocator, sizeof(sl_exact), &block));
    sl_exact *exact = block;
    *exact = (sl_exact){.allocator = allocator, .kernels = sl_kernels_best(), .params = mine, .nq = nq};
    exact->threads = sl_thread_count(mine.threads);
    int is_float = sl_dtype_is_float(mine.dtype);
    sl_codes codes = is_float ? SL_CODES_F32 : mine.dtype == SL_I16 ? SL_CODES_I16 : SL_CODES_I8;
    sl_status status = sl_codec_init(&exact->codec, mine.dim, mine.metric, is_float ? SL_F32 : mine.dtype, codes);
    if (status != SL_OK) {
        SL_FREE(&allocator, exact);
        return status;
    }
    exact->block_rows = BLOCK_BYTES / exact->codec.rows.pitch + CHUNK;
    if (nq) SL_TRY_GOTO(sl_check_stride(queries, mine.dtype, mine.dim, stride), fail);
    SL_TRY_GOTO(alloc_arrays(exact), fail);
    SL_TRY_GOTO(copy_queries(exact, queries, stride), fail);
    *out = exact;
    return SL_OK;
fail:
    sl_exact_free(exact);
    return status;
}

/* Encodes a block of rows. Returns the largest length in it.
 * Parameters: first: number of its first row. bad: keeps the first bad row. */
static double encode_block(sl_exact *exact, const uint8_t *rows, size_t n, size_t stride, size_t first,
                           sl_failure *bad) {
    const sl_exact_params *p = &exact->params;
    double most = 0;
#pragma omp parallel for schedule(static) num_threads((int)exact->threads) if (exact->threads > 1 && n > CHUNK)        \
    reduction(max                                                                                                      \
              : most)
    for (size_t i = 0; i < n; i++) {
        const uint8_t *row = rows + i * stride;
        sl_status status = sl_vector_check(p->metric, p->dtype, row, p->dim);
        if (status != SL_OK) {
            sl_failure_keep(bad, first + i, status);
            continue;
        }
        float *floats = exact->floats + sl_thread_number() * p->dim;
        sl_encode_row(&exact->codec, row, p->dtype, exact->block + i * exact->codec.rows.pitch, floats, NULL);
        sl_to_float(p->dtype, row, floats, p->dim);
        double norm2 = 0;
        for (size_t d = 0; d < p->dim; d++)
            norm2 += (double)floats[d] * (double)floats[d];
        if (norm2 > most) most = norm2;
    }
    return sqrt(most);
}

/* Returns the most by which a kernel's score may differ from the exact one, twice that under L2. It's the bound of
 * kernels.h, with |a| |b| for the sum of products.
 * Parameters: longest: the largest length of a row. */
static double margin_of(const sl_exact *exact, double query_length, double longest) {
    const sl_exact_params *p = &exact->params;
    /* An L2 score lacks |q|^2, which was rounded to a float too, however short the rows are. Kernels score U8 vectors
     * as x - 128, which can be far longer than x. */
    double shift = p->dtype == SL_U8 ? 128 * sqrt((double)p->dim) : 0;
    double far = longest + shift, query_far = query_length + shift;
    double reach = p->metric == SL_METRIC_COSINE ? query_far / query_length : (far + query_far) * (far + query_far);
    return ((double)p->dim + 16) * 0x1p-22 * reach;
}

/* Scans a block for one query. Computes an exact score only if the kernel's score is near enough. */
static void scan_query(sl_exact *exact, size_t q, const uint8_t *rows, size_t n, size_t stride, uint64_t first_id,
                       double longest) {
    const sl_exact_params *p = &exact->params;
    sl_top top = {exact->entries + q * p->k, exact->sizes[q], p->k};
    const int by_differences = exact->codec.rows.differences != 0;
    const double nearest = (double)sl_codec_nearest(&exact->codec, exact->query_norm2[q]);
    const double rounding = ((double)p->dim + 16) * 0x1p-22, least = (double)p->dim * (double)FLT_MIN;
    const double margin = margin_of(exact, sqrt((double)exact->query_norm2[q]), longest);
    const sl_row_scorer scorer = sl_row_scorer_of(exact->kernels, &exact->codec, &exact->query_codes[q], 0);
    uint32_t numbers[CHUNK + SL_SCORE_PAD];
    float scores[CHUNK + SL_SCORE_PAD];
    for (size_t start = 0; start < n; start += CHUNK) {
        size_t count = n - start < CHUNK ? n - start : CHUNK;
        sl_score_range(&scorer, start, count, numbers, scores);
        for (size_t i = 0; i < count; i++) {
            double rough = (double)scores[i];
            if (p->metric == SL_METRIC_L2) rough = 2 * (rough - nearest);
            /* The rounding error of a sum of squares is in proportion to the sum, unless the squares are lost among
             * subnormals. */
            double off = by_differences ? least - rounding * rough : margin;
            if (top.size == top.k && rough + 2 * off < top.entries[0].score) continue;
            double score = sl_score_pair(exact->kernels, p->metric, p->dtype, rows + (start + i) * stride,
                                         exact->queries + q * query_bytes(exact), p->dim);
            sl_top_push(&top, p->metric == SL_METRIC_L2 ? -score : score, first_id + start + i);
        }
    }
    exact->sizes[q] = top.size;
}

sl_status sl_exact_scan(sl_exact *exact, const void *rows, size_t n, size_t stride, uint64_t first_id) {
    if (!exact) return sl_fail(SL_EINVAL, "exact is NULL");
    if (n == 0) return SL_OK;
    if (!rows) return sl_fail(SL_EINVAL, "rows is NULL");
    if (first_id > SL_NO_ID - n)
        return sl_fail(SL_EINVAL, "row %llu would have id 2^64 - 1, which is reserved; give a smaller first id",
                       (unsigned long long)(SL_NO_ID - first_id));
    const sl_exact_params *p = &exact->params;
    SL_TRY(sl_check_stride(rows, p->dtype, p->dim, stride));
    if (stride == 0) stride = query_bytes(exact);
    sl_failure bad;
    sl_progress progress;
    sl_failure_init(&bad);
    sl_progress_start(&progress, p->progress, p->progress_ctx, n);
    for (size_t first = 0; first < n && !sl_progress_cancelled(&progress); first += exact->block_rows) {
        size_t count = n - first < exact->block_rows ? n - first : exact->block_rows;
        const uint8_t *block = (const uint8_t *)rows + first * stride;
        double longest = encode_block(exact, block, count, stride, first, &bad);
        if (bad.status != SL_OK) return sl_fail_in(sl_failure_pass(&bad), "row %zu", bad.at);
#pragma omp parallel for schedule(dynamic, 8) num_threads((int)exact->threads) if (exact->threads > 1 && exact->nq > 1)
        for (size_t q = 0; q < exact->nq; q++)
            scan_query(exact, q, block, count, stride, first_id + first, longest);
        sl_progress_step(&progress, count);
    }
    return sl_progress_end(&progress);
}

const sl_top_entry *sl_exact_entries(const sl_exact *exact, size_t query, size_t *count) {
    *count = exact->sizes[query];
    return exact->entries + query * exact->params.k;
}

void sl_exact_take(sl_exact *exact, size_t query, const sl_top_entry *entries, size_t count) {
    sl_top top = {exact->entries + query * exact->params.k, exact->sizes[query], exact->params.k};
    for (size_t i = 0; i < count; i++)
        sl_top_push(&top, entries[i].score, entries[i].id);
    exact->sizes[query] = top.size;
}

sl_status sl_exact_results_of(const sl_exact *exact, size_t first, size_t count, uint64_t *ids, float *scores) {
    size_t k = exact->params.k;
    void *block;
    SL_TRY(sl_mem_alloc(&exact->allocator, k * sizeof(sl_top_entry), &block));
    for (size_t q = 0; q < count; q++) {
        sl_top top = {block, exact->sizes[first + q], k};
        memcpy(block, exact->entries + (first + q) * k, top.size * sizeof(sl_top_entry));
        sl_top_sort(&top);
        for (size_t i = 0; i < k; i++) {
            int found = i < top.size;
            ids[q * k + i] = found ? top.entries[i].id : SL_NO_ID;
            if (!scores) continue;
            double score = found ? top.entries[i].score : (double)NAN;
            scores[q * k + i] = (float)(exact->params.metric == SL_METRIC_L2 ? 0 - score : score);
        }
    }
    sl_mem_free(&exact->allocator, block, k * sizeof(sl_top_entry));
    return SL_OK;
}

sl_status sl_exact_results(const sl_exact *exact, uint64_t *ids, float *scores) {
    if (!exact || (exact->nq && !ids)) return sl_fail(SL_EINVAL, "exact or ids is NULL");
    return sl_exact_results_of(exact, 0, exact->nq, ids, scores);
}
