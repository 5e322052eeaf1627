/* Where an index's memory lies on a machine of several memory nodes. */
#ifndef SL_HNSW_PLACE_NUMA_PLACE_H
#define SL_HNSW_PLACE_NUMA_PLACE_H

#include "base/pages.h"
#include "hnsw/graph/index.h"

/* The arrays of layer 0 that the index has, in memory with the room they have. Returns how many. */
size_t sl_placed_arrays(const sl_graph *graph, sl_span out[SL_ARRAY_KINDS]);

/* The policy of a new index, before it has any arrays. Of an index that nobody asked a policy for nothing here calls
 * anything. */
sl_status sl_numa_place_init(sl_index *index, sl_numa_policy policy, size_t node, const sl_numa_ops *ops);
void sl_numa_place_free(sl_index *index);

/* Reads the pages of a mapped index's layer 0, where a policy was asked for or `prefault` is set, and moves them to
 * where the policy says. Steps progress by bytes. */
sl_status sl_numa_place_read(sl_index *index, int prefault, sl_progress *progress);

#endif
