#include "hnsw/index/save_source.h"

#include "hnsw/graph/arrays.h"

#include <string.h>

/* The arrays of which words change. */
static const sl_array_kind changing[] = {SL_ARRAY_LINKS, SL_ARRAY_TAGS, SL_ARRAY_KEYS, SL_ARRAY_TOMBSTONES};
enum { CHANGING = sizeof changing / sizeof *changing };

static size_t bytes_of(const sl_graph *graph, sl_array_kind kind) {
    const sl_array *array = &graph->arrays[kind];
    return array->at ? sl_round_up(sl_array_size(kind, array->width, graph->n), SL_CACHE_LINE) : 0;
}

static size_t upper_bytes(const sl_graph *graph) {
    return graph->upper.rows * graph->m * sizeof(uint32_t);
}

/* Returns whether other threads may change the graph while a save writes it. An index that one thread alone has changed
 * takes no copies, so that a build needs no more memory. */
static int has_other_writers(const sl_index *index, const sl_graph *graph) {
    return graph->place == SL_PLACE_DRAM && !graph->record.pitch && !graph->ranks && !index->writer && !index->spill &&
           !index->work && sl_gate_is_shared(&index->versions->gate);
}

/* Copies what changes. Without memory the source has no copies. */
static void copy_changing(sl_save_source *source) {
    const sl_graph *graph = source->graph;
    for (size_t i = 0; i < CHANGING; i++)
        source->size += bytes_of(graph, changing[i]);
    source->size += upper_bytes(graph);
    if (sl_mem_alloc_raw(&graph->allocator, source->size, &source->block) != SL_OK) return;
    uint8_t *to = source->block;
    source->fixed = *graph;
    for (size_t i = 0; i < CHANGING; i++) {
        sl_array *array = &source->fixed.arrays[changing[i]];
        if (!array->at) continue;
        memcpy(to, array->at, sl_array_size(changing[i], array->width, graph->n));
        array->at = to;
        to += bytes_of(graph, changing[i]);
    }
    if (graph->upper.rows) memcpy(to, graph->upper.links, upper_bytes(graph));
    source->fixed.upper.links = (uint32_t *)(void *)to;
    source->graph = &source->fixed;
}

void sl_save_source_open(const sl_index *index, sl_save_source *source) {
    source->block = NULL;
    source->size = 0;
    source->graph = sl_reading_begin(index, &source->reading);
    source->facts = sl_published_of(index, source->graph);
    sl_published_seal(&source->facts, 1);
    if (has_other_writers(index, source->graph)) copy_changing(source);
    if (source->block) sl_version_keep_places(index, 1);
}

void sl_save_source_close(const sl_index *index, sl_save_source *source) {
    if (source->block) sl_version_keep_places(index, 0);
    sl_mem_free(&index->graph.allocator, source->block, source->size);
    sl_reading_end(&source->reading);
}
