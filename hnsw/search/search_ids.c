#include "hnsw/graph/ids.h"
#include "hnsw/graph/vectors.h"
#include "hnsw/search/batch_search.h"
#include "hnsw/search/search_params.h"

#include <math.h>

/* A chunk is searched as one batch. It has at most CHUNK decoded vectors, and RESULTS results unless k is larger. */
enum { CHUNK = 1024, RESULTS = 1 << 20 };

/* One call. It searches for k + 1 results, since the vector itself may be among them. */
typedef struct id_search {
    sl_index *index;
    const uint64_t *ids;
    size_t k, chunk;
    uint32_t *nodes;  /* nodes of the `chunk` vectors */
    uint8_t *vectors; /* the vectors, decoded */
    uint64_t *found;  /* k + 1 results of each vector */
    float *scores;
    uint64_t *out_ids; /* the caller's, as are the scores below */
    float *out_scores;
} id_search;

/* Writes row i of the caller's results: k results without the node itself. */
static void write_others(const id_search *a, const sl_graph *graph, size_t i, size_t row, size_t *results) {
    const uint64_t *found = a->found + row * (a->k + 1);
    const float *scores = a->scores + row * (a->k + 1);
    uint64_t *ids = a->out_ids + i * a->k;
    size_t kept = 0;
    for (size_t j = 0; j < a->k + 1 && kept < a->k && found[j] != SL_NO_ID; j++) {
        if (found[j] == a->nodes[row]) continue;
        ids[kept] = sl_id_of(graph, (uint32_t)found[j]);
        if (a->out_scores) a->out_scores[i * a->k + kept] = scores[j];
        kept++;
    }
    *results += kept;
    for (; kept < a->k; kept++) {
        ids[kept] = SL_NO_ID;
        if (a->out_scores) a->out_scores[i * a->k + kept] = NAN;
    }
}

/* Answers a chunk of `count` ids, from number batch->first on. */
static sl_status search_chunk(const id_search *a, sl_query_batch *batch, size_t count, sl_search_stats *sum) {
    const uint64_t *ids = a->ids + batch->first;
    sl_search_stats stats;
    sl_reading reading;
    sl_status status = sl_ids_read(a->index, &reading, ids, count, a->nodes);
    batch->graph = reading.graph;
    batch->nq = count;
    for (size_t i = 0; i < count && status == SL_OK; i++)
        if (a->nodes[i] == SL_NONE)
            status = sl_id_missing(ids[i]);
        else
            sl_vector_of(batch->graph, a->nodes[i], batch->dtype, a->vectors + i * batch->stride);
    if (status == SL_OK) status = sl_query_batch_run(a->index, batch, &stats);
    if (status == SL_OK) {
        stats.results = 0;
        for (size_t i = 0; i < count; i++)
            write_others(a, batch->graph, batch->first + i, i, &stats.results);
        sl_search_stats_add(sum, &stats);
    }
    sl_reading_end(&reading);
    return status;
}

static sl_status search_chunks(const id_search *a, sl_query_batch *batch, size_t n, sl_search_stats *sum) {
    for (batch->first = 0; batch->first < n; batch->first += a->chunk) {
        size_t left = n - batch->first;
        SL_TRY(search_chunk(a, batch, left < a->chunk ? left : a->chunk, sum));
    }
    return SL_OK;
}

/* Lays out a chunk's memory in `block`, unless it's NULL. Returns the size. */
static size_t lay_out_chunk(id_search *a, size_t bytes, uint8_t *block) {
    size_t results = a->chunk * (a->k + 1), vectors = sl_round_up(a->chunk * bytes, SL_CACHE_LINE);
    if (block) {
        a->vectors = block;
        a->found = (uint64_t *)(void *)(block + vectors);
        a->scores = (float *)(void *)(a->found + results);
        a->nodes = (uint32_t *)(void *)(a->scores + results);
    }
    return vectors + results * (sizeof *a->found + sizeof *a->scores) + a->chunk * sizeof *a->nodes;
}

static size_t chunk_for(size_t n, size_t k) {
    size_t most = RESULTS / (k + 1) < CHUNK ? RESULTS / (k + 1) : CHUNK;
    return n < most ? n : most;
}

static sl_status read_params(const sl_index *index, size_t n, sl_dtype dtype, size_t k, const sl_search_params *params,
                             sl_search_params *out) {
    sl_reading reading;
    const sl_graph *graph = sl_reading_begin(index, &reading);
    sl_status status = sl_search_params_read(graph, n, k, params, out);
    if (status == SL_OK) status = sl_search_check(graph, dtype, k, out);
    sl_reading_end(&reading);
    return status;
}

sl_status sl_index_search_ids(sl_index *index, const uint64_t *ids, size_t n, size_t k, const sl_search_params *params,
                              uint64_t *out_ids, float *scores, sl_search_stats *stats) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    sl_search_params mine;
    sl_search_stats sum = {0};
    void *block;
    const sl_graph *graph = &index->graph; /* its geometry */
    const sl_dtype own = graph->codec.dtype, dtype = sl_dtype_is_float(own) ? SL_F32 : own;
    size_t bytes = graph->codec.dim * sl_dtype_size(dtype);
    if (graph->multi)
        return sl_fail(SL_EUNSUPPORTED, "ids of this index may have several vectors; take one from sl_index_get_all, "
                                        "and search for it with a filter that excludes the id");
    if (k >= SL_MAX_EF) return sl_fail(SL_EINVAL, "k is %zu; give 1 to %u", k, SL_MAX_EF - 1);
    SL_TRY(read_params(index, n, dtype, k, params, &mine));
    if (mine.group_size)
        return sl_fail(SL_EINVAL, "group_size is %zu; searches by stored ids do not group: give 0", mine.group_size);
    if (n && (!ids || !out_ids)) return sl_fail(SL_EINVAL, "ids or out_ids is NULL");
    id_search a = {
        .index = index, .ids = ids, .k = k, .chunk = chunk_for(n, k), .out_ids = out_ids, .out_scores = scores};
    sl_query_batch batch = {.numa = index->numa,
                            .threads = sl_search_threads(a.chunk, mine.threads),
                            .dtype = dtype,
                            .stride = bytes,
                            .k = k + 1,
                            .params = &mine,
                            .nodes = 1};
    size_t size = lay_out_chunk(&a, bytes, NULL);
    SL_TRY(sl_mem_alloc_raw(&graph->allocator, size, &block));
    lay_out_chunk(&a, bytes, block);
    batch.queries = a.vectors;
    batch.ids = a.found;
    batch.scores = a.scores;
    sl_progress_start(&batch.progress, mine.progress, mine.progress_ctx, n);
    sl_status status = search_chunks(&a, &batch, n, &sum);
    sl_mem_free(&graph->allocator, block, size);
    if (stats && status == SL_OK) *stats = sum;
    return status;
}
