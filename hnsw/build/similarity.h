/*
 * The nearness of stored vectors to one another, for choosing links. It is taken from their codes, also where there is
 * a finer row: links chosen by floats were measured to save a walk no evaluations.
 */
#ifndef SL_HNSW_BUILD_SIMILARITY_H
#define SL_HNSW_BUILD_SIMILARITY_H

#include "hnsw/graph/index.h"

/* Scratch of one thread: one stored vector, ready to be compared with others. */
typedef struct sl_similarity {
    const sl_graph *graph;
    void *buffer;
    sl_query_code query;
} sl_similarity;

size_t sl_similarity_bytes(const sl_graph *graph);
sl_status sl_similarity_init(sl_similarity *similarity, const sl_graph *graph);
void sl_similarity_free(sl_similarity *similarity);

/* Makes ready the vector that others are compared with. */
void sl_similarity_set(sl_similarity *similarity, uint32_t node);

/* Sets out[i] to the nearness of nodes[i] to it; larger is nearer: the inner product under IP, the angle under COSINE,
 * Euclidean distance under L2. Values compare with others of the same sl_similarity_set, and with no others. */
void sl_similarity_many(sl_similarity *similarity, const uint32_t *nodes, size_t n, float *out);

/* Returns what its nearness to `node` is multiplied by, to tell which of several nodes lie in its direction: 1 over the
 * node's length under IP. A node without length has 0. Returns 1 under other metrics. */
float sl_similarity_unit(const sl_graph *graph, uint32_t node);

#endif
