/* The upper layers: levels of nodes, slots, and rows of links. */
#ifndef SL_HNSW_GRAPH_UPPER_H
#define SL_HNSW_GRAPH_UPPER_H

#include "hnsw/graph/index.h"

/* The level of a node that will be added. It depends on the seed and the node's number alone. */
uint32_t sl_level_of(const sl_graph *graph, uint32_t node);

/* Slots and rows of the nodes [first, n). `levels`: as for sl_upper_extend. */
typedef struct sl_upper_size {
    size_t count, rows;
} sl_upper_size;
sl_upper_size sl_upper_count(const sl_graph *graph, size_t first, size_t n, const uint8_t *levels);

/* Adds slots and empty link rows for the nodes of [first, n) on upper layers. `levels`: the level of each node; NULL:
 * sl_level_of tells it.
 * Errors: SL_ELIMIT, SL_ENOMEM. */
sl_status sl_upper_extend(sl_index *index, size_t first, size_t n, const uint8_t *levels);
/* Removes the slots and rows of nodes from `first` on. */
void sl_upper_truncate(sl_graph *graph, size_t first);
void sl_upper_free(sl_graph *graph);

/* A block to copy, and where to. */
typedef struct sl_copying {
    const void *from;
    void *to;
    size_t size;
} sl_copying;
#define SL_UPPER_PARTS 3u

/* Bytes of a copy of the upper layers, in one block. The index must have a slot. */
size_t sl_upper_copy_size(const sl_graph *graph);
/* Lays out a copy of the upper layers in `block`, and fills `parts`. The caller copies the parts.
 * Parameters: `block` has sl_upper_copy_size bytes.
 * Returns: the upper layers, with arrays in the block. */
sl_upper sl_upper_lay_out(const sl_graph *graph, void *block, sl_copying parts[SL_UPPER_PARTS]);

/* A node's slot; SL_NONE if it's on layer 0 alone. Slots are in node order. */
uint32_t sl_slot_of(const sl_graph *graph, uint32_t node);
/* A node's highest level. `*slot` gets its slot, or SL_NONE on level 0. */
uint32_t sl_level_and_slot(const sl_graph *graph, uint32_t node, uint32_t *slot);

#endif
