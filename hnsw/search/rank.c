#include "hnsw/graph/vectors.h"
#include "hnsw/search/searcher_state.h"

#include "distance/codec/encode.h"
#include "distance/codec/score.h"

#include <math.h>

enum { BLOCK = 256 };

/* Codes of 8 bits, or 4, put few true neighbours further behind than this; a projection in 4 bits puts more there. */
size_t sl_rerank_count(const sl_graph *graph, size_t k, const sl_search_params *params) {
    size_t own = sl_has(graph, SL_ARRAY_COARSE) ? 3 * k + 10 : k + k / 2 + 10;
    size_t wanted = params->rerank ? params->rerank : own;
    return wanted < k ? k : wanted;
}

/* Scores a row of floats against the query; larger is nearer. */
static double refined(const sl_searcher *searcher, sl_refine type, const void *row, float scale) {
    const sl_graph *graph = searcher->graph;
    const sl_refine_kernels *kernels = &graph->kernels->refine[type];
    const float *query = searcher->walk.floats;
    size_t dim = graph->codec.dim;
    if (graph->codec.metric == SL_METRIC_IP) return (double)kernels->dot(row, query, dim, scale);
    if (graph->codec.metric == SL_METRIC_L2) return -(double)kernels->l2(row, query, dim, scale);
    float norm2;
    float dot = kernels->dot_norm(row, query, dim, scale, &norm2);
    return (double)dot / sqrt((double)norm2 * (double)searcher->walk.query_norm2);
}

static double rescored(const sl_searcher *searcher, uint32_t node, const void *query) {
    const sl_graph *graph = searcher->graph;
    if (graph->refine == SL_REFINE_BF16) {
        sl_refined_floats(graph, node, searcher->candidate);
        return refined(searcher, SL_REFINE_F32, searcher->candidate, 1);
    }
    if (sl_has(graph, SL_ARRAY_REFINE)) {
        const uint8_t *row = sl_refine_row(graph, node);
        return refined(searcher, graph->refine, row, sl_refine_scale(graph, row));
    }
    if (graph->codec.codes == SL_CODES_F32) return refined(searcher, SL_REFINE_F32, sl_row(graph, node), 1);
    sl_decode_native(&graph->codec, sl_row(graph, node), searcher->candidate);
    double score = sl_score_pair(graph->kernels, graph->codec.metric, graph->codec.dtype, searcher->candidate, query,
                                 graph->codec.dim);
    return graph->codec.metric == SL_METRIC_L2 ? -score : score;
}

/* Turns a score of the codes into a result's. Under L2 that is the distance below zero, and rounding must not turn it
 * above. A score that is no number, as of a damaged row, stays so. */
static double result_score(const sl_searcher *searcher, float score) {
    if (searcher->graph->codec.metric != SL_METRIC_L2) return (double)score;
    double below = 2 * (double)score - (double)searcher->walk.query_norm2;
    return below > 0 ? 0 : below;
}

/* Ranks by all bits: the walk saw 4 bits of I4 codes. The rest beside them, or the rows that coarse rows stand for,
 * order the best of what it found. */
static void rank_by_all_bits(sl_searcher *searcher, size_t count) {
    const sl_graph *graph = searcher->graph;
    const sl_codec *codec = sl_walk_codec(&searcher->walk);
    const sl_pool *pool = &searcher->walk.pool;
    uint32_t nodes[BLOCK];
    float scores[BLOCK];
    const sl_code_rows *finer = codec->rest.pitch ? &codec->rest : &codec->rows;
    for (size_t i = 0; i < count; i++)
        sl_prefetch(finer->base + (size_t)sl_pool_id(pool->keys[i]) * finer->pitch, finer->size);
    for (size_t done = 0, some; done < count; done += some) {
        some = count - done < BLOCK ? count - done : BLOCK;
        for (size_t i = 0; i < some; i++) {
            nodes[i] = sl_pool_id(pool->keys[done + i]);
            sl_id_prefetch(graph, nodes[i]);
        }
        sl_score4(graph->kernels, codec, &searcher->walk.query4, nodes, some, scores);
        for (size_t i = 0; i < some; i++)
            sl_top_push(&searcher->top, result_score(searcher, scores[i]), nodes[i]);
    }
}

/* Ranks by finer data, or in exact integers. */
static void rank_one_by_one(sl_searcher *searcher, const void *query, size_t count) {
    const sl_graph *graph = searcher->graph;
    const sl_pool *pool = &searcher->walk.pool;
    for (size_t i = 0; i < count && sl_has(graph, SL_ARRAY_REFINE); i++)
        sl_refine_prefetch(graph, sl_pool_id(pool->keys[i]));
    for (size_t i = 0; i < count && sl_has(graph, SL_ARRAY_COARSE) && !sl_has(graph, SL_ARRAY_REFINE); i++)
        sl_prefetch(sl_row(graph, sl_pool_id(pool->keys[i])), graph->codec.rows.size);
    for (size_t i = 0; i < count; i++) {
        uint32_t node = sl_pool_id(pool->keys[i]);
        sl_top_push(&searcher->top, rescored(searcher, node, query), node);
    }
}

/* Ranks by the scores of the walk, which saw all there is. */
static void rank_as_walked(sl_searcher *searcher, size_t k) {
    const sl_pool *pool = &searcher->walk.pool;
    sl_top *top = &searcher->top;
    for (size_t i = 0; i < pool->size && i < k; i++) {
        double score = result_score(searcher, sl_pool_score(pool->keys[i]));
        top->entries[top->size++] = (sl_top_entry){score, sl_pool_id(pool->keys[i])};
    }
}

/* The order in the pool matters only where not all of it is scored anew. */
void sl_rank(sl_searcher *searcher, const void *query, size_t k, const sl_search_params *params) {
    const sl_graph *graph = searcher->graph;
    sl_pool *pool = &searcher->walk.pool;
    int singly = sl_has(graph, SL_ARRAY_REFINE) || graph->codec.codes == SL_CODES_F32 || graph->codec.dtype != SL_F32;
    int anew = singly || graph->codes == SL_CODES_I4;
    size_t count = sl_rerank_count(graph, k, params);
    if (!anew || count < pool->size) sl_pool_sort(pool);
    if (count > pool->size) count = pool->size;
    searcher->top.size = 0;
    searcher->top.k = k;
    if (singly)
        rank_one_by_one(searcher, query, count);
    else if (anew)
        rank_by_all_bits(searcher, count);
    else
        rank_as_walked(searcher, k);
    if (anew) sl_top_sort(&searcher->top);
}
