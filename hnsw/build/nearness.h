/*
 * How near stored vectors are to one another, for choosing links. By their codes, also where there is a refine tier:
 * links chosen by floats were measured to save a walk no evaluations.
 */
#ifndef SL_HNSW_BUILD_NEARNESS_H
#define SL_HNSW_BUILD_NEARNESS_H

#include "hnsw/graph/index.h"

/* Scratch of one thread: one stored vector made ready to be compared with others. */
typedef struct sl_rate {
    const sl_index *index;
    void *buffer;
    sl_query_code query;
} sl_rate;

sl_status sl_rate_init(sl_rate *rate, const sl_index *index);
void sl_rate_free(sl_rate *rate);

/* Makes ready the vector that others are compared with. */
void sl_rate_set(sl_rate *rate, uint32_t node);

/* out[i] = nearness of nodes[i] to it, larger being nearer, in the geometry links are chosen by: the angle under
 * COSINE, and otherwise Euclidean distance; under IP too, where the product itself would link everything to the longest
 * vectors. Values compare with others of the same set, and of no other. */
void sl_rate_many(sl_rate *rate, const uint32_t *nodes, size_t n, float *out);

#endif
