/* The upper layers: levels of nodes, slots, and rows of links. */
#ifndef SL_HNSW_GRAPH_UPPER_H
#define SL_HNSW_GRAPH_UPPER_H

#include "hnsw/graph/index.h"

/* The level of a node that is about to be added. The seed and the node's number alone decide the level. */
uint32_t sl_level_of(const sl_graph *graph, uint32_t node);

/* Slots and rows of the nodes [first, n). */
typedef struct sl_upper_size {
    size_t count, rows;
} sl_upper_size;
sl_upper_size sl_upper_count(const sl_graph *graph, size_t first, size_t n);

/* Makes slots and empty link rows for those nodes of [first, n) that stand above layer 0.
 * Errors: SL_ELIMIT, SL_ENOMEM. */
sl_status sl_upper_extend(sl_index *index, size_t first, size_t n);
/* Takes away the slots and rows of the nodes from `first` on. */
void sl_upper_truncate(sl_graph *graph, size_t first);
void sl_upper_free(sl_graph *graph);

/* A block of memory, and the place to which a copy of the block goes. */
typedef struct sl_copying {
    const void *from;
    void *to;
    size_t size;
} sl_copying;
#define SL_UPPER_PARTS 3u

/* Bytes of a copy of the upper layers in one block. The index has at least one slot. */
size_t sl_upper_copy_size(const sl_graph *graph);
/* Lays out a copy of the upper layers in `block`, and copies nothing.
 * Parameters: `block` has sl_upper_copy_size bytes; `parts` gets what the caller has to copy.
 * Returns: the upper layers with their arrays in the block. */
sl_upper sl_upper_lay_out(const sl_graph *graph, void *block, sl_copying parts[SL_UPPER_PARTS]);

/* The slot of a node; SL_NONE for a node on layer 0 alone. Slots are in the order of their nodes. */
uint32_t sl_slot_of(const sl_graph *graph, uint32_t node);
/* The highest level of a node. `*slot` gets the node's slot, or SL_NONE on level 0. */
uint32_t sl_level_and_slot(const sl_graph *graph, uint32_t node, uint32_t *slot);

#endif
