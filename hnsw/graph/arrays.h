/* The arrays of an index as data: the properties of each kind, and operations on all arrays. */
#ifndef SL_HNSW_GRAPH_ARRAYS_H
#define SL_HNSW_GRAPH_ARRAYS_H

#include "base/pages.h"
#include "hnsw/graph/index.h"

typedef enum sl_array_flag {
    SL_ARRAY_CHECKSUMMED = 1, /* the node's checksum covers the row: see checksums.h */
    SL_ARRAY_PLACED = 2,      /* the array belongs to layer 0: the NUMA policy and prefault apply to it */
    SL_ARRAY_MOVED = 4,       /* renumbering moves the rows unchanged */
    SL_ARRAY_COPIED = 8,      /* a damaged node gets a copy of a sound node's row */
    SL_ARRAY_ADDED = 16,      /* an add writes the rows of all its nodes at once */
    SL_ARRAY_SINGLE = 32,     /* one row serves the whole index */
    SL_ARRAY_BITS = 64,       /* each node has one bit; the width is then 1 */
    SL_ARRAY_FILED = 128      /* the array exists in files that are written in place alone */
} sl_array_flag;

/* Makes a node's row of an array from the node's rows of other arrays. */
typedef void sl_derive_fn(const sl_graph *graph, uint32_t node, uint8_t *row);

/* One line of array_table.def. */
typedef struct sl_array_line {
    sl_section_kind section;
    unsigned flags;
    size_t whole;
    size_t slack;
    sl_derive_fn *derive;     /* NULL: an add encodes the rows */
    size_t in_stats, in_plan; /* offset of the uint64_t that counts the bytes; 0: nothing counts them */
} sl_array_line;

extern const sl_array_line sl_array_lines[SL_ARRAY_KINDS];

/* Settles the widths of a new index. The index has its codecs. */
void sl_arrays_init(sl_graph *graph);

/* Says that the array lies at `at`, as consecutive rows of `width` bytes. */
void sl_array_put(sl_graph *graph, sl_array_kind kind, void *at, size_t width);
/* Says that the array's rows are parts of records: `size` bytes each, and `step` bytes from one row to the next. */
void sl_array_put_part(sl_graph *graph, sl_array_kind kind, void *at, size_t size, size_t step);

/* Bytes of n nodes' rows of this width, without slack. */
size_t sl_array_size(sl_array_kind kind, size_t width, size_t n);
/* Bytes to allocate for n nodes' rows of the index's width, with slack; 0 where the index has no such rows. */
size_t sl_array_bytes(const sl_graph *graph, sl_array_kind kind, size_t n);

/* The bytes of nodes [first, first + n) in an array with one row for each node. The first part of a record returns
 * whole records; the other parts return empty spans. An absent array returns an empty span too. */
sl_span sl_array_span(const sl_graph *graph, sl_array_kind kind, size_t first, size_t n);

/* The allocator of an array. The NUMA policy's allocator serves arrays with a row for each node. */
const sl_allocator *sl_array_allocator(const sl_index *index, sl_array_kind kind);

/* The CRC-32C of the node's rows with SL_ARRAY_CHECKSUMMED, each with its padding, and of the id in 8 bytes. */
uint32_t sl_checksum_of(const sl_graph *graph, uint32_t node);

/* Writes the same as a row of SL_ARRAY_CHECKSUMS: see sl_derive_fn. */
sl_derive_fn sl_checksum_row;

/* Moves all arrays to new memory for `capacity` nodes. Errors: SL_ENOMEM; a failure moves none. */
sl_status sl_arrays_reserve(sl_index *index, size_t capacity);
/* Frees the arrays that the index owns. */
void sl_arrays_free(sl_index *index);

#endif
