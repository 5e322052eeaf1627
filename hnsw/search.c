#include "hnsw/search.h"

#include "base/params.h"
#include "hnsw/accept.h"
#include "hnsw/walk.h"

#include <math.h>

struct sl_searcher {
    const sl_index *index;
    sl_walk walk;
    sl_top top;       /* max_ef entries */
    float *candidate; /* a vector brought back from its row, to be scored */
};

void sl_search_params_init_sized(sl_search_params *params, size_t struct_size) {
    const sl_search_params mine = {.struct_size = sizeof mine, .ef = 64, .threads = 1};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

sl_status sl_searcher_create(const sl_index *index, size_t max_ef, sl_searcher **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    if (max_ef == 0 || max_ef > SL_MAX_EF) return sl_fail(SL_EINVAL, "max_ef is %zu; give 1 to %u", max_ef, SL_MAX_EF);
    void *block;
    SL_TRY(sl_mem_alloc(&index->allocator, sizeof(sl_searcher), &block));
    sl_searcher *searcher = block;
    searcher->index = index;
    sl_status status;
    SL_TRY_GOTO(sl_walk_init(&searcher->walk, index, max_ef), fail);
    SL_TRY_GOTO(sl_mem_alloc(&index->allocator, max_ef * sizeof(sl_top_entry), &block), fail);
    searcher->top.entries = block;
    SL_TRY_GOTO(sl_mem_alloc(&index->allocator, index->codec.dim * sizeof(float), &block), fail);
    searcher->candidate = block;
    *out = searcher;
    return SL_OK;
fail:
    sl_searcher_free(searcher);
    return status;
}

void sl_searcher_free(sl_searcher *searcher) {
    if (!searcher) return;
    const sl_allocator *allocator = &searcher->index->allocator;
    sl_mem_free(allocator, searcher->top.entries, searcher->walk.max_ef * sizeof(sl_top_entry));
    sl_mem_free(allocator, searcher->candidate, searcher->index->codec.dim * sizeof(float));
    sl_walk_free(&searcher->walk);
    sl_mem_free(allocator, searcher, sizeof *searcher);
}

/* How many of the pool's best are scored anew. Codes of 8 bits put few true neighbours further behind than this. */
static size_t rerank_count(size_t k, const sl_search_params *params) {
    size_t wanted = params->rerank ? params->rerank : k + k / 2 + 10;
    return wanted < k ? k : wanted;
}

/* A float row against the query, larger being nearer. */
static double refined(const sl_searcher *searcher, sl_refine type, const void *row, float scale) {
    const sl_index *index = searcher->index;
    const sl_refine_kernels *kernels = &index->kernels->refine[type];
    const float *query = searcher->walk.floats;
    size_t dim = index->codec.dim;
    if (index->codec.metric == SL_METRIC_IP) return (double)kernels->dot(row, query, dim, scale);
    if (index->codec.metric == SL_METRIC_L2) return -(double)kernels->l2(row, query, dim, scale);
    float norm2;
    float dot = kernels->dot_norm(row, query, dim, scale, &norm2);
    return (double)dot / sqrt((double)norm2 * (double)searcher->walk.query_norm2);
}

static double rescored(const sl_searcher *searcher, uint32_t node, const void *query) {
    const sl_index *index = searcher->index;
    if (index->refine == SL_REFINE_BF16) {
        sl_refined_floats(index, node, searcher->candidate);
        return refined(searcher, SL_REFINE_F32, searcher->candidate, 1);
    }
    if (index->refine_pitch) {
        const uint8_t *row = sl_refine_row(index, node);
        return refined(searcher, index->refine, row, sl_refine_scale(index, row));
    }
    if (index->codec.codes == SL_CODES_F32) return refined(searcher, SL_REFINE_F32, sl_row(index, node), 1);
    sl_decode_native(&index->codec, sl_row(index, node), searcher->candidate);
    double score = sl_score_pair(index->kernels, index->codec.metric, index->codec.dtype, searcher->candidate, query,
                                 index->codec.dim);
    return index->codec.metric == SL_METRIC_L2 ? -score : score;
}

/* The pool's best as results: scored anew over finer data or in exact integers where the index has them. */
static void rank(sl_searcher *searcher, const void *query, size_t k, const sl_search_params *params) {
    const sl_index *index = searcher->index;
    const sl_pool *pool = &searcher->walk.pool;
    sl_top *top = &searcher->top;
    top->size = 0;
    top->k = k;
    if (index->refine_pitch || index->codec.codes == SL_CODES_F32 || index->codec.dtype != SL_F32) {
        size_t count = rerank_count(k, params);
        if (count > pool->size) count = pool->size;
        for (size_t i = 0; i < count && index->refine_pitch; i++)
            sl_refine_prefetch(index, sl_pool_id(pool->keys[i]));
        for (size_t i = 0; i < count; i++) {
            uint32_t node = sl_pool_id(pool->keys[i]);
            sl_top_push(top, rescored(searcher, node, query), node);
        }
        sl_top_sort(top);
        return;
    }
    for (size_t i = 0; i < pool->size && i < k; i++) {
        double score = (double)sl_pool_score(pool->keys[i]);
        if (index->codec.metric == SL_METRIC_L2) score = fmin(0, 2 * score - (double)searcher->walk.query_norm2);
        top->entries[top->size++] = (sl_top_entry){score, sl_pool_id(pool->keys[i])};
    }
}

static void write_results(const sl_searcher *searcher, size_t k, uint64_t *ids, float *scores) {
    const sl_index *index = searcher->index;
    const sl_top *top = &searcher->top;
    for (size_t i = 0; i < k; i++) {
        int found = i < top->size;
        ids[i] = found ? sl_id_of(index, (uint32_t)top->entries[i].id) : SL_NO_ID;
        if (!scores) continue;
        scores[i] = found ? sl_score_of(index, top->entries[i].score) : NAN;
    }
}

static sl_status check_search(const sl_index *index, sl_dtype dtype, size_t k, const sl_search_params *params) {
    if (k == 0 || k > SL_MAX_EF) return sl_fail(SL_EINVAL, "k is %zu; give 1 to %u", k, SL_MAX_EF);
    if (params->ef == 0 || params->ef > SL_MAX_EF)
        return sl_fail(SL_EINVAL, "ef is %zu; give 1 to %u", params->ef, SL_MAX_EF);
    SL_TRY(sl_accept_check(params));
    return sl_codec_accepts(&index->codec, dtype);
}

/* The nodes that may be returned, nearest to the walk's query first, into its pool. Where a filter leaves too few of a
 * full pool, the walk is made again with a pool of twice the size: what a smaller one has dropped is lost to it. */
static void gather(sl_searcher *searcher, size_t k, const sl_search_params *params) {
    const sl_index *index = searcher->index;
    sl_walk *walk = &searcher->walk;
    size_t ef = params->ef > k ? params->ef : k, wanted = rerank_count(k, params);
    if (wanted > ef) wanted = ef;
    uint32_t start = sl_walk_descend(walk, sl_entry_get(index), 0);
    sl_walk_layer(walk, 0, start, ef);
    while (sl_accept_given(params)) {
        size_t seen = walk->pool.size;
        sl_accept_pool(index, params, &walk->pool);
        if (sl_accept_enough(walk->pool.size, seen, k, wanted)) return;
        if (seen < ef || ef >= walk->max_ef) return;
        ef = ef < walk->max_ef / 2 ? 2 * ef : walk->max_ef;
        sl_walk_layer(walk, 0, start, ef);
    }
}

/* One query whose parameters have been checked, into the searcher's top. */
static sl_status search_one(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                            const sl_search_params *params) {
    const sl_index *index = searcher->index;
    sl_walk *walk = &searcher->walk;
    SL_TRY(sl_vector_check(index->codec.metric, dtype, query, index->codec.dim));
    walk->evaluations = walk->expansions = 0;
    walk->pool.size = 0;
    if (index->n) {
        sl_encode_query(&index->codec, query, dtype, walk->query_buffer, walk->floats, &walk->query,
                        &walk->query_norm2);
        gather(searcher, k, params);
    }
    rank(searcher, query, k, params);
    return SL_OK;
}

static void add_stats(const sl_searcher *searcher, sl_search_stats *stats) {
    stats->results += searcher->top.size;
    stats->evaluations += searcher->walk.evaluations;
    stats->expansions += searcher->walk.expansions;
}

static sl_status read_params(sl_search_params *mine, const sl_search_params *given) {
    sl_search_params_init(mine);
    return sl_params_in(mine, sizeof *mine, given, "sl_search_params_init");
}

sl_status sl_searcher_find(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                           const sl_search_params *params, sl_found *found, sl_search_stats *stats) {
    sl_search_params mine;
    SL_TRY(read_params(&mine, params));
    SL_TRY(check_search(searcher->index, dtype, k, &mine));
    if (k > searcher->walk.max_ef || mine.ef > searcher->walk.max_ef)
        return sl_fail(SL_EINVAL, "k %zu and ef %zu; this searcher was made for %zu: create a larger one", k, mine.ef,
                       searcher->walk.max_ef);
    SL_TRY(search_one(searcher, query, dtype, k, &mine));
    *found = (sl_found){searcher->top.entries, searcher->top.size};
    if (stats) {
        *stats = (sl_search_stats){0};
        add_stats(searcher, stats);
    }
    return SL_OK;
}

sl_status sl_searcher_search(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                             const sl_search_params *params, uint64_t *ids, float *scores, sl_search_stats *stats) {
    if (!searcher || !query || !ids) return sl_fail(SL_EINVAL, "searcher, query or ids is NULL");
    sl_found found;
    SL_TRY(sl_searcher_find(searcher, query, dtype, k, params, &found, stats));
    write_results(searcher, k, ids, scores);
    return SL_OK;
}

typedef struct sl_batch {
    sl_searcher **searchers; /* one a thread */
    size_t threads;
    const uint8_t *queries;
    sl_dtype dtype;
    size_t nq, stride, k;
    const sl_search_params *params;
    uint64_t *ids;
    float *scores;
    sl_progress progress;
} sl_batch;

static sl_status batch_row(sl_batch *batch, size_t i, size_t thread) {
    sl_searcher *searcher = batch->searchers[thread];
    const size_t k = batch->k;
    SL_TRY(search_one(searcher, batch->queries + i * batch->stride, batch->dtype, k, batch->params));
    write_results(searcher, k, batch->ids + i * k, batch->scores ? batch->scores + i * k : NULL);
    return SL_OK;
}

/* The only thing that can fail in a row is the query itself: its message is made again on the thread that called. */
static sl_status batch_run(sl_batch *batch, sl_search_stats *stats) {
    size_t bad = SIZE_MAX;
    sl_search_stats sum = {0};
#pragma omp parallel num_threads((int)batch->threads) if (batch->threads > 1)
    {
        size_t thread = sl_thread_number();
        sl_search_stats mine = {0};
#pragma omp for schedule(dynamic, 4) reduction(min : bad)
        for (size_t i = 0; i < batch->nq; i++) {
            if (sl_progress_cancelled(&batch->progress)) continue;
            if (batch_row(batch, i, thread) == SL_OK)
                add_stats(batch->searchers[thread], &mine);
            else if (i < bad)
                bad = i;
            sl_progress_step(&batch->progress, 1);
        }
#pragma omp critical(sl_batch_stats)
        {
            sum.results += mine.results;
            sum.evaluations += mine.evaluations;
            sum.expansions += mine.expansions;
        }
    }
    if (bad != SIZE_MAX) return sl_fail_in(batch_row(batch, bad, 0), "query %zu", bad);
    SL_TRY(sl_progress_end(&batch->progress));
    if (stats) *stats = sum;
    return SL_OK;
}

sl_status sl_index_search(const sl_index *index, const void *queries, sl_dtype dtype, size_t nq, size_t stride,
                          size_t k, const sl_search_params *params, uint64_t *ids, float *scores,
                          sl_search_stats *stats) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    sl_search_params mine;
    SL_TRY(read_params(&mine, params));
    SL_TRY(check_search(index, dtype, k, &mine));
    if (stats) *stats = (sl_search_stats){0};
    if (nq == 0) return SL_OK;
    if (!queries || !ids) return sl_fail(SL_EINVAL, "queries or ids is NULL");
    SL_TRY(sl_check_stride(queries, dtype, index->codec.dim, stride));
    sl_batch batch = {.threads = sl_thread_count(mine.threads),
                      .queries = queries,
                      .dtype = dtype,
                      .nq = nq,
                      .stride = stride ? stride : index->codec.dim * sl_dtype_size(dtype),
                      .k = k,
                      .params = &mine,
                      .ids = ids,
                      .scores = scores};
    if (batch.threads > nq) batch.threads = nq;
    sl_progress_start(&batch.progress, mine.progress, mine.progress_ctx, nq);
    void *block;
    SL_TRY(sl_mem_alloc(&index->allocator, batch.threads * sizeof *batch.searchers, &block));
    batch.searchers = block;
    sl_status status = SL_OK;
    for (size_t t = 0; t < batch.threads && status == SL_OK; t++)
        status = sl_searcher_create(index, sl_accept_room(&mine, k), &batch.searchers[t]);
    if (status == SL_OK) status = batch_run(&batch, stats);
    for (size_t t = 0; t < batch.threads; t++)
        sl_searcher_free(batch.searchers[t]);
    sl_mem_free(&index->allocator, batch.searchers, batch.threads * sizeof *batch.searchers);
    return status;
}
