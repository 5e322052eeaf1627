/*
 * The nearness of stored vectors to one another, for choosing links. It is taken from their codes, also where there is
 * a finer row: links chosen by floats were measured to save a walk no evaluations.
 */
#ifndef SL_HNSW_BUILD_NEARNESS_H
#define SL_HNSW_BUILD_NEARNESS_H

#include "hnsw/graph/index.h"

/* Scratch of one thread: one stored vector, ready to be compared with others. */
typedef struct sl_nearness {
    const sl_graph *graph;
    void *buffer;
    sl_query_code query;
} sl_nearness;

sl_status sl_nearness_init(sl_nearness *nearness, const sl_graph *graph);
void sl_nearness_free(sl_nearness *nearness);

/* Makes ready the vector that others are compared with. */
void sl_nearness_set(sl_nearness *nearness, uint32_t node);

/* Sets out[i] to the nearness of nodes[i] to it; larger is nearer. The geometry is that of choosing links: the angle
 * under COSINE, and Euclidean distance otherwise. That holds under IP too, since the product would link everything to
 * the longest vectors. Values compare with others of the same sl_nearness_set, and with no others. */
void sl_nearness_many(sl_nearness *nearness, const uint32_t *nodes, size_t n, float *out);

#endif
