/* The hits of a range search: nodes that walks scored above a threshold, each once, in order of arrival. The list is
 * also the queue from which a walk continues. */
#ifndef SL_HNSW_SEARCH_RANGE_HITS_H
#define SL_HNSW_SEARCH_RANGE_HITS_H

#include "base/memory.h"

typedef struct sl_range_hits {
    uint32_t *ids;
    float *scores; /* the walk's scores; larger is nearer */
    size_t count, room;
    size_t expanded;  /* nodes before this place are expanded */
    float threshold;  /* only scores above it are added; NaN never is */
    sl_status status; /* SL_ENOMEM: some hits were lost for lack of memory */
} sl_range_hits;

void sl_range_hits_free(sl_range_hits *hits, const sl_allocator *allocator);

/* Empties the hits and lowers the threshold to -INFINITY. */
void sl_range_hits_start(sl_range_hits *hits);

/* Adds the nodes, of n, that score above the threshold. hits->status keeps a failure. */
void sl_range_hits_add(sl_range_hits *hits, const sl_allocator *allocator, const float *scores, const uint32_t *ids,
                       size_t n);

/* Raises the threshold and drops the hits that are not above it. Afterwards all hits count as unexpanded. */
void sl_range_hits_raise_threshold(sl_range_hits *hits, float threshold);

#endif
