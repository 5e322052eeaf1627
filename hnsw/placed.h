/* Where an index's memory lies on a machine of several memory nodes. */
#ifndef SL_HNSW_PLACED_H
#define SL_HNSW_PLACED_H

#include "hnsw/graph.h"

/* The policy of a new index, before it has any arrays. Of an index that nobody asked a policy for nothing here calls
 * anything. */
sl_status sl_placed_init(sl_index *index, sl_numa_policy policy, size_t node, const sl_numa_ops *ops);
void sl_placed_free(sl_index *index);

/* Reads the pages of a mapped index's layer 0, as far as a policy was asked for, and moves them to where it says. Steps
 * progress by bytes. */
sl_status sl_placed_read(sl_index *index, sl_progress *progress);

#endif
