/* From ids to nodes: which nodes have an id of a list or of a bitmap. */
#ifndef SL_HNSW_SEARCH_IDS_TO_NODES_H
#define SL_HNSW_SEARCH_IDS_TO_NODES_H

#include "hnsw/graph/index.h"

/* Sets the bit of each node whose id is in the list. Skips unknown ids. A deleted node may get its bit.
 * Parameters: graph: the index's own or a view. nodes: zeroed bits, one per node.
 * Errors: SL_ENOMEM. */
sl_status sl_nodes_of_ids(sl_index *index, const sl_graph *graph, const sl_allocator *allocator, const uint64_t *ids,
                          size_t count, uint64_t *nodes);

/* Sets the bit of each node whose id has a bit in a bitmap over the ids below `count`. */
void sl_nodes_of_id_bits(const sl_graph *graph, const uint64_t *bits, uint64_t count, uint64_t *nodes);

#endif
