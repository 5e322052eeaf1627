/* Tombstones: the marks of deleted nodes. index.h has the accessors of one node's mark. */
#ifndef SL_HNSW_GRAPH_TOMBSTONES_H
#define SL_HNSW_GRAPH_TOMBSTONES_H

#include "hnsw/graph/index.h"

/* Makes the next sync write the zero marks of nodes from `first` on, so that the file has no hole where readers look
 * for marks. */
void sl_tombstones_extend(const sl_index *index, size_t first);

/* Flips a node's mark. The index must have marks. The caller changes deleted_count. */
void sl_tombstone_flip(sl_index *index, uint32_t node);

/* Counts the marks that are set. */
size_t sl_tombstones_count(const sl_graph *graph);

/* Checks that deleted_count marks are set, all of them on nodes of the index. Errors: SL_ECORRUPT. */
sl_status sl_tombstones_check(const sl_graph *graph);

#endif
