#include "hnsw/construct/similarity.h"

#include "distance/codec/encode.h"
#include "hnsw/search/score_block.h"

#include <math.h>

/* Rows are prefetched this many rows ahead. */
enum { PREFETCH_AHEAD = 4 };

size_t sl_similarity_bytes(const sl_graph *graph) {
    return sl_query_size(&graph->codec);
}

sl_status sl_similarity_init(sl_similarity *similarity, const sl_graph *graph) {
    *similarity = (sl_similarity){0};
    SL_TRY(sl_mem_alloc(&graph->allocator, sl_similarity_bytes(graph), &similarity->buffer));
    similarity->graph = graph;
    return SL_OK;
}

void sl_similarity_free(sl_similarity *similarity) {
    if (!similarity->graph) return;
    sl_mem_free(&similarity->graph->allocator, similarity->buffer, sl_similarity_bytes(similarity->graph));
    similarity->graph = NULL;
}

void sl_similarity_set(sl_similarity *similarity, uint32_t node) {
    const sl_graph *graph = similarity->graph;
    sl_row_as_query(&graph->codec, sl_row(graph, node), similarity->buffer, &similarity->query);
}

void sl_similarity_many(sl_similarity *similarity, const uint32_t *nodes, size_t n, float *out) {
    const sl_graph *graph = similarity->graph;
    const sl_row_scorer scorer = sl_row_scorer_of(graph->kernels, &graph->codec, &similarity->query, PREFETCH_AHEAD);
    sl_score_block(&scorer, nodes, n, n, out);
}

float sl_similarity_unit(const sl_graph *graph, uint32_t node) {
    if (graph->codec.metric != SL_METRIC_IP) return 1;
    float norm2 = sl_row_norm2(&graph->codec, sl_row(graph, node));
    return norm2 > 0 ? 1 / sqrtf(norm2) : 0;
}
