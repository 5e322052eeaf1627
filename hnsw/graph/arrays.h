/* The arrays of an index as data: the table of their properties, and the functions that work on all arrays. */
#ifndef SL_HNSW_GRAPH_ARRAYS_H
#define SL_HNSW_GRAPH_ARRAYS_H

#include "base/pages.h"
#include "hnsw/graph/index.h"

typedef enum sl_array_flag {
    SL_ARRAY_CHECKSUMMED = 1, /* the node's checksum covers the row: see checksums.h */
    SL_ARRAY_PLACED = 2,      /* part of layer 0: the NUMA policy and prefault apply */
    SL_ARRAY_MOVED = 4,       /* renumbering moves the rows unchanged */
    SL_ARRAY_COPIED = 8,      /* a damaged node gets a sound node's row */
    SL_ARRAY_ADDED = 16,      /* an add writes the rows of all its nodes at once */
    SL_ARRAY_SINGLE = 32,     /* one row serves the whole index */
    SL_ARRAY_BITS = 64,       /* one bit per node; the width is then 1 */
    SL_ARRAY_FILED = 128      /* only files that are written in place have the array */
} sl_array_flag;

/* Makes a node's row of one array from its rows of other arrays. */
typedef void sl_derive_fn(const sl_graph *graph, uint32_t node, uint8_t *row);

/* One line of array_table.def. */
typedef struct sl_array_line {
    sl_section_kind section;
    unsigned flags;
    size_t whole;
    size_t slack;
    sl_derive_fn *derive;     /* NULL: an add encodes the rows */
    size_t in_stats, in_plan; /* offset of the uint64_t that counts the bytes; 0: there is none */
} sl_array_line;

extern const sl_array_line sl_array_lines[SL_ARRAY_KINDS];

/* Sets the widths of a new index, whose codecs are set. */
void sl_arrays_init(sl_graph *graph);

/* Sets where an array lies: at `at`, with rows of `width` bytes. */
void sl_array_put(sl_graph *graph, sl_array_kind kind, void *at, size_t width);
/* Sets that an array's rows lie in records, `size` bytes each and `step` bytes apart. */
void sl_array_put_part(sl_graph *graph, sl_array_kind kind, void *at, size_t size, size_t step);

/* Bytes of n rows of this width, without slack. */
size_t sl_array_size(sl_array_kind kind, size_t width, size_t n);
/* Bytes to allocate for n nodes' rows, slack included; 0 if the index has no such rows. */
size_t sl_array_bytes(const sl_graph *graph, sl_array_kind kind, size_t n);

/* The bytes of nodes [first, first + n) in an array that has a row for each node. If rows lie in records, the span of
 * the first part is that of the whole records, and the spans of the other parts are empty. The span of an absent array
 * is empty too. */
sl_span sl_array_span(const sl_graph *graph, sl_array_kind kind, size_t first, size_t n);

/* The allocator of an array. Arrays with a row for each node use the NUMA policy's. */
const sl_allocator *sl_array_allocator(const sl_index *index, sl_array_kind kind);

/* The CRC-32C of the node's rows with SL_ARRAY_CHECKSUMMED, each padded, and of its id in 8 bytes. */
uint32_t sl_checksum_of(const sl_graph *graph, uint32_t node);

/* Makes a row of SL_ARRAY_CHECKSUMS. */
sl_derive_fn sl_checksum_row;

/* Returns whether the array grows with the number of nodes, in the index's own memory. */
int sl_array_is_movable(const sl_graph *graph, sl_array_kind kind);
/* Frees the arrays that the index owns. */
void sl_arrays_free(sl_index *index);

#endif
