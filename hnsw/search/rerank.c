#include "hnsw/search/rerank.h"

#include "distance/codec/encode.h"
#include "distance/codec/score.h"
#include "hnsw/graph/vectors.h"

#include <math.h>

/* If more than this many candidates are re-ranked, codes of 8 or 4 bits lose few true neighbours. A 4-bit projection
 * needs more. */
size_t sl_rerank_count(const sl_graph *graph, size_t k, const sl_search_params *params) {
    size_t own = sl_has(graph, SL_ARRAY_COARSE) ? 3 * k + 10 : k + k / 2 + 10;
    size_t wanted = params->rerank ? params->rerank : own;
    return wanted < k ? k : wanted;
}

/* Scores a row of re-ranking vectors against the query; larger is nearer. */
static double refine_score(const sl_searcher *searcher, sl_refine type, const void *row, float scale) {
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

static double finest_score(const sl_searcher *searcher, uint32_t node, const void *query) {
    const sl_graph *graph = searcher->graph;
    if (graph->refine == SL_REFINE_BF16) {
        sl_refined_floats(graph, node, searcher->decoded);
        return refine_score(searcher, SL_REFINE_F32, searcher->decoded, 1);
    }
    if (sl_has(graph, SL_ARRAY_REFINE)) {
        const uint8_t *row = sl_refine_row(graph, node);
        return refine_score(searcher, graph->refine, row, sl_refine_scale(graph, row));
    }
    if (graph->codec.codes == SL_CODES_F32) return refine_score(searcher, SL_REFINE_F32, sl_row(graph, node), 1);
    sl_decode_native(&graph->codec, sl_row(graph, node), searcher->decoded);
    double score = sl_score_pair(graph->kernels, graph->codec.metric, graph->codec.dtype, searcher->decoded, query,
                                 graph->codec.dim);
    return graph->codec.metric == SL_METRIC_L2 ? -score : score;
}

/* Converts a score of the codes to a result's. Under L2 a result's score is minus the distance, and rounding must not
 * lift it above 0. NaN of a damaged row stays NaN. */
static double result_score(const sl_searcher *searcher, float score) {
    if (searcher->graph->codec.metric != SL_METRIC_L2) return (double)score;
    double below =
        2 * (double)score - 2 * (double)sl_codec_nearest(&searcher->graph->codec, searcher->walk.query_norm2);
    return below > 0 ? 0 : below;
}

/* Scores nodes by all bits of their codes. The walk read only 4 bits of I4 codes, or coarse rows. */
static void score_by_all_bits(const sl_searcher *searcher, const uint32_t *nodes, size_t count, double *out) {
    float scores[SL_RESULT_BLOCK];
    sl_score4(searcher->graph->kernels, sl_walk_index_codec(&searcher->walk), &searcher->walk.query4, nodes, count,
              scores);
    for (size_t i = 0; i < count; i++)
        out[i] = result_score(searcher, scores[i]);
}

/* Returns whether nodes are scored one by one: by re-ranking vectors, floats, or exact integers. */
static int is_scored_singly(const sl_graph *graph) {
    return sl_has(graph, SL_ARRAY_REFINE) || graph->codec.codes == SL_CODES_F32 || graph->codec.dtype != SL_F32;
}

static int has_finer_data(const sl_graph *graph) {
    return is_scored_singly(graph) || graph->codes == SL_CODES_I4;
}

void sl_result_prefetch(const sl_searcher *searcher, uint32_t node) {
    const sl_graph *graph = searcher->graph;
    const sl_codec *codec = sl_walk_index_codec(&searcher->walk);
    const sl_code_rows *finer = codec->rest.pitch ? &codec->rest : &codec->rows;
    if (!has_finer_data(graph)) return;
    if (sl_has(graph, SL_ARRAY_REFINE))
        sl_refine_prefetch(graph, node);
    else if (!is_scored_singly(graph))
        sl_prefetch(finer->base + (size_t)node * finer->pitch, finer->size);
    else if (sl_has(graph, SL_ARRAY_COARSE))
        sl_prefetch(sl_row(graph, node), graph->codec.rows.size);
}

void sl_result_scores(const sl_searcher *searcher, const void *query, const uint32_t *nodes, const float *walk_scores,
                      size_t count, double *out) {
    const sl_graph *graph = searcher->graph;
    if (has_finer_data(graph) && !is_scored_singly(graph)) {
        score_by_all_bits(searcher, nodes, count, out);
        return;
    }
    for (size_t i = 0; i < count; i++)
        out[i] =
            has_finer_data(graph) ? finest_score(searcher, nodes[i], query) : result_score(searcher, walk_scores[i]);
}

/* Re-ranks the first `count` candidates of the pool. */
static void rerank_best(sl_searcher *searcher, const void *query, size_t count) {
    const sl_pool *pool = &searcher->walk.pool;
    uint32_t nodes[SL_RESULT_BLOCK];
    double scores[SL_RESULT_BLOCK];
    for (size_t i = 0; i < count; i++)
        sl_result_prefetch(searcher, sl_pool_id(pool->keys[i]));
    for (size_t done = 0, some; done < count; done += some) {
        some = count - done < SL_RESULT_BLOCK ? count - done : SL_RESULT_BLOCK;
        for (size_t i = 0; i < some; i++) {
            nodes[i] = sl_pool_id(pool->keys[done + i]);
            sl_id_prefetch(searcher->graph, nodes[i]);
        }
        sl_result_scores(searcher, query, nodes, NULL, some, scores);
        for (size_t i = 0; i < some; i++)
            sl_top_push(&searcher->top, scores[i], nodes[i]);
    }
}

/* Keeps the order of the walk's scores, because the walk read the finest data. */
static void keep_walk_order(sl_searcher *searcher, size_t k) {
    const sl_pool *pool = &searcher->walk.pool;
    sl_top *top = &searcher->top;
    for (size_t i = 0; i < pool->size && i < k; i++) {
        double score = result_score(searcher, sl_pool_score(pool->keys[i]));
        top->entries[top->size++] = (sl_top_entry){score, sl_pool_id(pool->keys[i])};
    }
}

/* The pool needs sorting only if some of its candidates are not scored again. */
void sl_rerank_pool(sl_searcher *searcher, const void *query, size_t k, const sl_search_params *params) {
    const sl_graph *graph = searcher->graph;
    sl_pool *pool = &searcher->walk.pool;
    int finer = has_finer_data(graph);
    size_t count = sl_rerank_count(graph, k, params);
    if (!finer || count < pool->size) sl_pool_sort(pool);
    if (count > pool->size) count = pool->size;
    searcher->top.size = 0;
    searcher->top.k = k;
    if (finer)
        rerank_best(searcher, query, count);
    else
        keep_walk_order(searcher, k);
    if (finer) sl_top_sort(&searcher->top);
    if (params->has_threshold) sl_results_cut(searcher, params->threshold);
}

void sl_rerank_scan(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params,
                    const sl_scan *found) {
    sl_searcher_choose_copies(searcher);
    sl_walk_set_query(&searcher->walk, query, SL_ENCODE_RERANK);
    sl_pool_set(&searcher->walk.pool, found->scores, found->ids, found->count);
    sl_rerank_pool(searcher, query.vector, k, params);
}

void sl_rerank_again(sl_searcher *searcher, const void *query, size_t k, size_t rerank, sl_results *found) {
    sl_rerank_pool(searcher, query, k, &(sl_search_params){.rerank = rerank});
    *found = (sl_results){searcher->top.entries, searcher->top.size};
}
