#include "hnsw/build/nearness.h"

#include "distance/codec/encode.h"
#include "hnsw/search/score_block.h"

/* A row is asked for so many rows before it is scored. */
enum { AHEAD = 4 };

sl_status sl_nearness_init(sl_nearness *nearness, const sl_graph *graph) {
    *nearness = (sl_nearness){0};
    SL_TRY(sl_mem_alloc(&graph->allocator, sl_query_size(&graph->codec), &nearness->buffer));
    nearness->graph = graph;
    return SL_OK;
}

void sl_nearness_free(sl_nearness *nearness) {
    if (!nearness->graph) return;
    sl_mem_free(&nearness->graph->allocator, nearness->buffer, sl_query_size(&nearness->graph->codec));
    nearness->graph = NULL;
}

void sl_nearness_set(sl_nearness *nearness, uint32_t node) {
    const sl_graph *graph = nearness->graph;
    sl_row_as_query(&graph->codec, sl_row(graph, node), nearness->buffer, &nearness->query);
}

void sl_nearness_many(sl_nearness *nearness, const uint32_t *nodes, size_t n, float *out) {
    const sl_graph *graph = nearness->graph;
    const sl_codec *codec = &graph->codec;
    const sl_scorer scorer = sl_scorer_of(graph->kernels, codec, &nearness->query, AHEAD);
    sl_score_block(&scorer, nodes, n, n, out);
    /* Rows carry their length under L2, and rows of I4 under IP too. Under COSINE it is 1. */
    if (codec->codes == SL_CODES_I4) return;
    for (size_t i = 0; i < n && codec->metric == SL_METRIC_IP; i++)
        out[i] -= 0.5f * sl_row_norm2(codec, sl_row(graph, nodes[i]));
}
