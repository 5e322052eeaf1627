/* Tombstones: the marks of deleted nodes. index.h has the accessors of one node's mark. */
#ifndef SL_HNSW_GRAPH_TOMBSTONES_H
#define SL_HNSW_GRAPH_TOMBSTONES_H

#include "hnsw/graph/ids.h"

/* Makes the next sync write the zero marks of nodes from `first` on, so that the file has no hole where readers look
 * for marks. */
void sl_tombstones_extend(const sl_index *index, size_t first);

/* Deletes nodes that aren't deleted, in the version that is published next. The caller holds the lock, and has made
 * room for tombstones. */
void sl_nodes_delete(sl_index *index, const sl_node_list *nodes);
/* The same, and makes nodes [first, first + n) begin in that version. */
void sl_nodes_replace(sl_index *index, const sl_node_list *nodes, size_t first, size_t n);

/* Makes room for tombstones. Errors: SL_ENOMEM, SL_ENOSPC. */
sl_status sl_tombstones_reserve(sl_index *index);
/* The same, and for the lives of nodes that are deleted while searches run. */
sl_status sl_lives_reserve(sl_index *index);

/* Hide new nodes [first, first + n), which walks pass but no search finds, and show them. The caller holds the lock,
 * and publishes. */
void sl_nodes_hide(sl_index *index, size_t first, size_t n);
void sl_nodes_show(sl_index *index, size_t first, size_t n);
/* Takes hidden nodes back, the last ones, which searches that go on must not find. The index must have lives. */
void sl_nodes_take_back(sl_index *index, size_t first, size_t n);

/* Flips a node's mark. The index must have marks. The caller changes deleted_count. */
void sl_tombstone_flip(sl_index *index, uint32_t node);

/* Counts the marks that are set. */
size_t sl_tombstones_count(const sl_graph *graph);

/* Checks that deleted_count marks are set, all of them on nodes of the index. Errors: SL_ECORRUPT. */
sl_status sl_tombstones_check(const sl_graph *graph);

#endif
