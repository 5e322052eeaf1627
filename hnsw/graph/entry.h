/* The entry point of the graph. */
#ifndef SL_HNSW_GRAPH_ENTRY_H
#define SL_HNSW_GRAPH_ENTRY_H

#include "hnsw/graph/index.h"

/* The entry point, unpacked from the word sl_graph.entry. Its upper half is the level; its lower half is the slot, or
 * on level 0 the node. One load reads both. */
typedef struct sl_entry {
    uint32_t level;
    uint32_t slot; /* SL_NONE on level 0 */
    uint32_t node;
} sl_entry;

/* Reads the entry point. Threads: any number, beside one sl_entry_set. */
sl_entry sl_entry_get(const sl_graph *graph);
/* The same, but takes the node from a copy of the upper layers. */
sl_entry sl_entry_in(const sl_graph *graph, const sl_upper *upper);

/* Stores the entry point. In persistent memory, publishes it too. */
void sl_entry_set(sl_index *index, uint32_t level, uint32_t slot_or_node);

#endif
