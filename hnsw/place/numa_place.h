/* The place of an index's memory on a machine with several memory nodes. */
#ifndef SL_HNSW_PLACE_NUMA_PLACE_H
#define SL_HNSW_PLACE_NUMA_PLACE_H

#include "base/pages.h"
#include "hnsw/graph/index.h"

/* Lists the arrays of layer 0; for an index in memory, with their room. Returns: the number of arrays. */
size_t sl_placed_arrays(const sl_graph *graph, sl_span out[SL_ARRAY_KINDS]);

/* Sets the policy of a new index without arrays. Without a policy, no function here makes a system call. */
sl_status sl_numa_place_init(sl_index *index, sl_numa_policy policy, size_t node, const sl_numa_ops *ops);
void sl_numa_place_free(sl_index *index);

/* If there is a policy or `prefault` is set, reads the pages of a mapped index's layer 0 and moves them as the policy
 * says. Parameters: `progress` counts bytes. Errors: SL_ECANCELED, and those of moving pages. */
sl_status sl_numa_place_read(sl_index *index, int prefault, sl_progress *progress);

#endif
