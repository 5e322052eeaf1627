/* Marks of deleted nodes. index.h has the accessors of one node's mark. */
#ifndef SL_HNSW_GRAPH_TOMBSTONES_H
#define SL_HNSW_GRAPH_TOMBSTONES_H

#include "hnsw/graph/index.h"

/* Has the next sync write the marks of the nodes from `first` on, which are zeros. Readers then meet no hole in the
 * file. */
void sl_tombstones_extend(const sl_index *index, size_t first);

/* Flips a node's mark. The index has marks; the caller changes dead_count. */
void sl_tombstone_flip(sl_index *index, uint32_t node);

/* Counts the marks that are set. */
size_t sl_tombstones_count(const sl_graph *graph);

/* Checks that dead_count marks are set, and all of them on nodes of the index. Errors: SL_ECORRUPT. */
sl_status sl_tombstones_check(const sl_graph *graph);

#endif
