#include "hnsw/graph/arrays.h"

#include "base/crc32c.h"
#include "hnsw/graph/links.h"

#include <string.h>

#define SL_ARRAY(name, section, width, whole, slack, flags, stats, plan)
#define SL_DERIVED(name, section, width, whole, slack, flags, stats, plan, derive) sl_derive_fn derive;
#include "hnsw/graph/array_table.def"
#undef SL_ARRAY
#undef SL_DERIVED

#define LINE(section_, whole_, slack_, flags_, stats, plan, derive_)                                                   \
    {.section = section_,                                                                                              \
     .flags = flags_,                                                                                                  \
     .whole = whole_,                                                                                                  \
     .slack = slack_,                                                                                                  \
     .derive = derive_,                                                                                                \
     .in_stats = offsetof(sl_index_stats, stats),                                                                      \
     .in_plan = offsetof(sl_plan, plan)},
const sl_array_line sl_array_lines[SL_ARRAY_KINDS] = {
#define SL_ARRAY(name, section, width, whole, slack, flags, stats, plan)                                               \
    LINE(section, whole, slack, flags, stats, plan, NULL)
#define SL_DERIVED(name, section, width, whole, slack, flags, stats, plan, derive)                                     \
    LINE(section, whole, slack, flags, stats, plan, derive)
#include "hnsw/graph/array_table.def"
#undef SL_ARRAY
#undef SL_DERIVED
};

/* F32 and BF16 rows are bare elements, BF16 rounded up to 4 bytes. I16 rows have a codec. */
static size_t refine_width(const sl_graph *graph) {
    const size_t dim = graph->codec.dim;
    switch (graph->refine) {
    case SL_REFINE_F32:
        return dim * sizeof(float);
    case SL_REFINE_BF16:
        return sl_round_up(dim * sizeof(uint16_t), 4);
    case SL_REFINE_I16:
        return graph->refine_codec.rows.pitch;
    case SL_REFINE_NONE:
        break;
    }
    return 0;
}

void sl_arrays_init(sl_graph *graph) {
    const size_t widths[SL_ARRAY_KINDS] = {
#define SL_ARRAY(name, section, width, whole, slack, flags, stats, plan)           [SL_ARRAY_##name] = (width),
#define SL_DERIVED(name, section, width, whole, slack, flags, stats, plan, derive) [SL_ARRAY_##name] = (width),
#include "hnsw/graph/array_table.def"
#undef SL_ARRAY
#undef SL_DERIVED
    };
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        sl_array_put(graph, kind, NULL, widths[kind]);
}

/* The kernels' view of the rows; NULL if no kernel scores the array. */
static sl_code_rows *code_rows(sl_graph *graph, sl_array_kind kind) {
    if (kind == SL_ARRAY_CODES) return &graph->codec.rows;
    if (kind == SL_ARRAY_REST) return &graph->codec.rest;
    return kind == SL_ARRAY_COARSE ? &graph->coarse.codec.rows : NULL;
}

void sl_array_put_part(sl_graph *graph, sl_array_kind kind, void *at, size_t size, size_t step) {
    sl_array *array = &graph->arrays[kind];
    sl_code_rows *rows = code_rows(graph, kind);
    array->at = at;
    array->size = size;
    array->step = step;
    if (!rows) return;
    rows->base = at;
    rows->size = size;
    rows->pitch = step;
}

void sl_array_put(sl_graph *graph, sl_array_kind kind, void *at, size_t width) {
    graph->arrays[kind].width = width;
    sl_array_put_part(graph, kind, at, width, width);
}

size_t sl_array_size(sl_array_kind kind, size_t width, size_t n) {
    const unsigned flags = sl_array_lines[kind].flags;
    if (flags & SL_ARRAY_BITS) return width ? sl_tombstones_bytes(n) : 0;
    return flags & SL_ARRAY_SINGLE ? width : n * width;
}

size_t sl_array_bytes(const sl_graph *graph, sl_array_kind kind, size_t n) {
    const size_t width = graph->arrays[kind].width;
    return width ? sl_array_size(kind, width, n) + sl_array_lines[kind].slack : 0;
}

sl_span sl_array_span(const sl_graph *graph, sl_array_kind kind, size_t first, size_t n) {
    const sl_array *array = &graph->arrays[kind];
    if (!array->at || graph->record.at[kind]) return (sl_span){array->at, 0};
    return (sl_span){array->at + first * array->step, n * array->step};
}

/* ---------------------------------------------------------------------------------------------------------------
 * Checksums
 * ------------------------------------------------------------------------------------------------------------- */

/* Adds a row, padded. A row in a record has no padding, so zeros stand in for it. */
static uint32_t checksum_add_row(uint32_t crc, const sl_array *array, uint32_t node) {
    static const uint8_t padding[SL_CACHE_LINE];
    crc = sl_crc32c(crc, array->at + node * array->step, array->size);
    return sl_crc32c(crc, padding, array->width - array->size);
}

uint32_t sl_checksum_of(const sl_graph *graph, uint32_t node) {
    uint64_t id = sl_id_of(graph, node);
    uint32_t crc = 0;
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++)
        if (sl_has(graph, kind) && (sl_array_lines[kind].flags & SL_ARRAY_CHECKSUMMED))
            crc = checksum_add_row(crc, &graph->arrays[kind], node);
    return sl_crc32c(crc, &id, sizeof id);
}

void sl_checksum_row(const sl_graph *graph, uint32_t node, uint8_t *row) {
    *(uint32_t *)(void *)row = sl_checksum_of(graph, node);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Room in memory
 * ------------------------------------------------------------------------------------------------------------- */

const sl_allocator *sl_array_allocator(const sl_index *index, sl_array_kind kind) {
    if (sl_is_parted(&index->graph, kind)) return &sl_sparse_allocator;
    return sl_array_lines[kind].flags & SL_ARRAY_SINGLE ? &index->graph.allocator : &index->layer0;
}

int sl_array_is_movable(const sl_graph *graph, sl_array_kind kind) {
    return graph->arrays[kind].width && !(sl_array_lines[kind].flags & (SL_ARRAY_SINGLE | SL_ARRAY_FILED));
}

void sl_arrays_free(sl_index *index) {
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++) {
        sl_array *array = &index->graph.arrays[kind];
        if (!(sl_array_lines[kind].flags & SL_ARRAY_FILED))
            sl_mem_free(sl_array_allocator(index, kind), array->at,
                        sl_array_bytes(&index->graph, kind, index->graph.capacity));
        sl_array_put(&index->graph, kind, NULL, array->width);
    }
}
