/* What a node has, as data: the kinds of arrays, what holds for each, and where an index keeps them. */
#ifndef SL_HNSW_GRAPH_ARRAYS_H
#define SL_HNSW_GRAPH_ARRAYS_H

#include "base/pages.h"
#include "storage/store.h"

typedef enum sl_array_kind {
#define SL_ARRAY(name, section, width, slack, flags, stats, plan)           SL_ARRAY_##name,
#define SL_DERIVED(name, section, width, slack, flags, stats, plan, derive) SL_ARRAY_##name,
#include "hnsw/graph/arrays.def"
#undef SL_ARRAY
#undef SL_DERIVED
    SL_ARRAY_KINDS
} sl_array_kind;

typedef enum sl_array_flag {
    SL_ARRAY_RECORDED = 1, /* a part of the record, in files that have records; see record.h */
    SL_ARRAY_SUMMED = 2,   /* counts for the node's checksum; see sums.h */
    SL_ARRAY_PLACED = 4,   /* a NUMA policy and prefault apply to it; counted as layer 0 */
    SL_ARRAY_MOVED = 8,    /* renumbering moves its rows as they are */
    SL_ARRAY_COPIED = 16,  /* a damaged node gets a copy of a sound node's row */
    SL_ARRAY_ADDED = 32,   /* an add writes its rows, all of them at once */
    SL_ARRAY_SINGLE = 64,  /* one row for the whole index */
    SL_ARRAY_BITS = 128,   /* a bit a node; width 1 stands for it */
    SL_ARRAY_FILED = 256   /* only in files that are written in place; never in memory of the index's own */
} sl_array_flag;

typedef struct sl_graph sl_graph; /* index.h */

/* Makes a node's row of an array, from the other arrays. */
typedef void sl_derive_fn(const sl_graph *graph, uint32_t node, uint8_t *row);

/* A line of arrays.def. */
typedef struct sl_array_line {
    sl_section_kind section;
    unsigned flags;
    size_t slack;
    sl_derive_fn *derive;     /* NULL: rows are encoded */
    size_t in_stats, in_plan; /* offsets of a uint64_t in sl_index_stats and sl_plan; 0: not counted */
} sl_array_line;

extern const sl_array_line sl_array_lines[SL_ARRAY_KINDS];

/* Where an index has an array: the row of node i begins at at + i * step. */
typedef struct sl_array {
    uint8_t *at;  /* NULL: there is no memory for it */
    size_t width; /* bytes of a row in an array of its own, padding included; 0: the index has no such rows */
    size_t size;  /* bytes of a row as it lies; in records without the padding */
    size_t step;  /* width, or the pitch of a record */
} sl_array;

/* Settles the widths of a new index, whose codecs are there. */
void sl_arrays_init(sl_graph *graph);

/* The array lies at `at`, in rows of `width` bytes, one behind the other. */
void sl_array_put(sl_graph *graph, sl_array_kind kind, void *at, size_t width);
/* The array's rows are parts of records: `size` bytes of each, `step` bytes from one to the next. */
void sl_array_put_part(sl_graph *graph, sl_array_kind kind, void *at, size_t size, size_t step);

/* Bytes of n nodes' rows of this width, without slack. */
size_t sl_array_size(sl_array_kind kind, size_t width, size_t n);
/* Bytes to allocate for n nodes' rows of the index's width, slack included; 0 where the index has no such rows. */
size_t sl_array_bytes(const sl_graph *graph, sl_array_kind kind, size_t n);

/* The bytes of nodes [first, first + n) in an array with a row a node. In records the part that lies first stands for
 * whole records; the spans of the other parts are empty, as is that of an array that is not there. */
sl_span sl_array_span(const sl_graph *graph, sl_array_kind kind, size_t first, size_t n);

/* Where an array's memory comes from: a NUMA policy is for rows of nodes. */
const sl_allocator *sl_array_allocator(const sl_index *index, sl_array_kind kind);

/* Moves the arrays to room for `capacity` nodes: all of them, or none on failure. Errors: SL_ENOMEM. */
sl_status sl_arrays_reserve(sl_index *index, size_t capacity);
/* Frees the arrays of an index in memory. */
void sl_arrays_free(sl_index *index);

#endif
