/* Lives: when nodes were added and deleted. A search finds the nodes that were there when it began, though writers add
 * and delete meanwhile. index.h has the accessors. */
#ifndef SL_HNSW_GRAPH_LIVES_H
#define SL_HNSW_GRAPH_LIVES_H

#include "hnsw/graph/index.h"

/* Makes room for the lives of `capacity` nodes, and keeps those that there are. Untouched lives take no memory. The old
 * lives stay: the caller frees them once no reader has them. Errors: SL_ENOMEM. */
sl_status sl_lives_grow(const sl_lives *from, size_t capacity, sl_lives *out);
void sl_lives_free(sl_lives *lives);
/* Bytes of the lives, untouched ones too. */
size_t sl_lives_bytes(const sl_lives *lives);

/* Notes that a node is added or deleted in an epoch that has not begun. The tombstone changes after this. */
void sl_life_begin(const sl_graph *graph, size_t node, uint64_t epoch);
void sl_life_end(const sl_graph *graph, size_t node, uint64_t epoch);
/* Notes in an epoch that has not begun that a node was never added. */
void sl_life_unborn(const sl_graph *graph, size_t node, uint64_t epoch);

#endif
