/* Similarity of stored vectors to each other, for selecting links. It is computed from the codes even if finer rows
 * exist. Selecting links by floats did not make walks shorter. */
#ifndef SL_HNSW_CONSTRUCT_SIMILARITY_H
#define SL_HNSW_CONSTRUCT_SIMILARITY_H

#include "hnsw/graph/index.h"

/* One thread's scratch: a base vector, ready to be compared with others. */
typedef struct sl_similarity {
    const sl_graph *graph;
    void *buffer;
    sl_query_code query;
} sl_similarity;

size_t sl_similarity_bytes(const sl_graph *graph);
sl_status sl_similarity_init(sl_similarity *similarity, const sl_graph *graph);
void sl_similarity_free(sl_similarity *similarity);

/* Makes a node the base, which others are compared with. */
void sl_similarity_set(sl_similarity *similarity, uint32_t node);

/* Sets out[i] to the similarity of nodes[i] to the base; larger is nearer. Similarities order by inner product under
 * IP, by angle under COSINE and by distance under L2. They compare only with similarities to the same base. */
void sl_similarity_many(sl_similarity *similarity, const uint32_t *nodes, size_t n, float *out);

/* Returns a factor for similarities to `node`. Similarities to one base, each times its node's factor, order nodes by
 * angle under IP. The factor is 1 over the node's length under IP, 0 if that length is 0, and 1 under other metrics. */
float sl_similarity_unit(const sl_graph *graph, uint32_t node);

#endif
