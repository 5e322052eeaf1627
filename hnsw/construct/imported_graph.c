#include "hnsw/construct/imported_graph.h"

#include "hnsw/graph/links.h"
#include "hnsw/graph/upper.h"

/* Slots of rows. */
static void rows_to_slots(const sl_graph *graph, uint32_t *rows, size_t count) {
    for (size_t i = 0; i < count; i++)
        rows[i] = sl_slot_of(graph, rows[i]);
}

static void link_row(const sl_build *build, size_t row) {
    const sl_index *index = build->index;
    const sl_graph *graph = &index->graph;
    const sl_imported_graph *imported = build->imported;
    const uint32_t slot = sl_slot_of(graph, (uint32_t)row);
    uint32_t ids[2 * SL_MAX_M];
    for (uint32_t level = 0; level <= imported->levels[row]; level++) {
        const sl_layer layer = sl_layer_at(graph, level);
        const size_t count = imported->links(imported->ctx, row, level, ids);
        if (level) rows_to_slots(graph, ids, count);
        sl_links_store(index, sl_layer_links(&layer, level ? slot : (uint32_t)row), layer.degree, ids, count);
    }
}

sl_status sl_imported_graph_link(sl_build *build) {
    const sl_imported_graph *imported = build->imported;
    const uint32_t level = imported->levels[imported->entry];
#pragma omp parallel for schedule(dynamic, SL_BUILD_CHUNK) num_threads((int)build->threads) if (build->threads > 1)
    for (size_t row = 0; row < build->n; row++) {
        if (sl_progress_cancelled(&build->progress)) continue;
        link_row(build, row);
        sl_progress_step(&build->progress, 1);
    }
    sl_entry_set(build->index, level, level ? sl_slot_of(&build->index->graph, imported->entry) : imported->entry);
    return SL_OK;
}
