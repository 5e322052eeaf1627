/* Free places: nodes without a vector, whose numbers the next adds use. A free place is deleted, its list is empty, and
 * no list names it. */
#ifndef SL_HNSW_GRAPH_FREE_NODES_H
#define SL_HNSW_GRAPH_FREE_NODES_H

#include "base/share.h"
#include "hnsw/graph/index.h"

/* Makes room in a set for all nodes that the index has room for. Errors: SL_ENOMEM. */
sl_status sl_node_set_reserve(const sl_index *index, sl_node_set *set);
void sl_node_set_free(const sl_index *index, sl_node_set *set);
/* The set must have room for the node. */
void sl_node_set_add(sl_node_set *set, size_t node);
/* Adds nodes [0, n) to an empty set. */
void sl_node_set_add_first(sl_node_set *set, size_t n);
void sl_node_set_remove(sl_node_set *set, size_t node);
/* Returns the number of nodes. Threads: any, beside a writer. */
static inline size_t sl_node_set_count(const sl_node_set *set) {
    return __atomic_load_n(&set->count, __ATOMIC_RELAXED);
}
/* Returns the first node of a set in a range; range.end: there is none. */
size_t sl_node_set_next(const sl_node_set *set, sl_range range);

/* Finds the free places of a file that was opened to be written. The caller has the index for a change.
 * Errors: SL_ENOMEM. */
sl_status sl_free_nodes_load(sl_index *index);

/* Returns whether a node's place is free, or is becoming free: the node is deleted, and has no links. */
static inline int sl_is_out(const sl_graph *graph, size_t node) {
    return graph->deleted_count && sl_is_deleted(graph, node) && sl_link_load(sl_links(graph, node)) == SL_NONE;
}

/* Empties a node's place: its rows, its id and its links on all levels. Nothing of the vector stays. The caller holds
 * the lock, has the index for a change, and no search that began earlier runs. */
void sl_node_wipe(sl_index *index, uint32_t node);

#endif
