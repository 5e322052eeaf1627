#include "hnsw/build/nearness.h"

#include "distance/codec/encode.h"
#include "hnsw/search/score_block.h"

#include <math.h>

/* A row is asked for so many rows before it is scored. */
enum { AHEAD = 4 };

size_t sl_nearness_bytes(const sl_graph *graph) {
    return sl_query_size(&graph->codec);
}

sl_status sl_nearness_init(sl_nearness *nearness, const sl_graph *graph) {
    *nearness = (sl_nearness){0};
    SL_TRY(sl_mem_alloc(&graph->allocator, sl_nearness_bytes(graph), &nearness->buffer));
    nearness->graph = graph;
    return SL_OK;
}

void sl_nearness_free(sl_nearness *nearness) {
    if (!nearness->graph) return;
    sl_mem_free(&nearness->graph->allocator, nearness->buffer, sl_nearness_bytes(nearness->graph));
    nearness->graph = NULL;
}

void sl_nearness_set(sl_nearness *nearness, uint32_t node) {
    const sl_graph *graph = nearness->graph;
    sl_row_as_query(&graph->codec, sl_row(graph, node), nearness->buffer, &nearness->query);
}

void sl_nearness_many(sl_nearness *nearness, const uint32_t *nodes, size_t n, float *out) {
    const sl_graph *graph = nearness->graph;
    const sl_scorer scorer = sl_scorer_of(graph->kernels, &graph->codec, &nearness->query, AHEAD);
    sl_score_block(&scorer, nodes, n, n, out);
}

float sl_nearness_unit(const sl_graph *graph, uint32_t node) {
    if (graph->codec.metric != SL_METRIC_IP) return 1;
    float norm2 = sl_row_norm2(&graph->codec, sl_row(graph, node));
    return norm2 > 0 ? 1 / sqrtf(norm2) : 0;
}
