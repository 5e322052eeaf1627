/* Nodes that walks have met above a floor, each once, in the order of arrival. They are also a queue: a walk may go on
 * from each of them. */
#ifndef SL_HNSW_SEARCH_RANGE_HITS_H
#define SL_HNSW_SEARCH_RANGE_HITS_H

#include "base/memory.h"

typedef struct sl_range_hits {
    uint32_t *ids;
    float *scores; /* of the walk, larger is nearer */
    size_t count, room;
    size_t expanded;  /* nodes before it were expanded */
    float threshold;  /* only scores above it are taken. NaN never is */
    sl_status status; /* SL_ENOMEM: something was left out */
} sl_range_hits;

void sl_range_hits_free(sl_range_hits *hits, const sl_allocator *allocator);

/* Empties it. It then takes any score but NaN and -INFINITY. */
void sl_range_hits_start(sl_range_hits *hits);

/* Takes those of n nodes that score above the floor. */
void sl_range_hits_add(sl_range_hits *hits, const sl_allocator *allocator, const float *scores, const uint32_t *ids,
                       size_t n);

/* Raises the floor, and leaves out what is not above it. Nothing counts as expanded then. */
void sl_range_hits_raise_threshold(sl_range_hits *hits, float threshold);

#endif
