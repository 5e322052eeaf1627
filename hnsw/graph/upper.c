#include "hnsw/graph/upper.h"

#include "base/random.h"
#include "hnsw/graph/publish.h"
#include "hnsw/graph/version.h"

#include <math.h>
#include <string.h>

uint32_t sl_level_of(const sl_graph *graph, uint32_t node) {
    /* Levels are exponentially distributed with the mean 1 / ln M, as the HNSW paper recommends. */
    double level = -log(sl_random_unit(graph->seed, node)) / log((double)graph->m);
    return level < SL_MAX_LEVEL ? (uint32_t)level : SL_MAX_LEVEL;
}

static sl_status grow_array(const sl_index *index, uint32_t **array, size_t *capacity, size_t need, size_t width) {
    sl_status status = SL_OK;
    if (index->writer && need > *capacity)
        return sl_fail(
            SL_ELIMIT,
            "%s has no room left on the upper layers; make more with 'shortlist rebuild --room' or sl_index_rebuild",
            index->store->path);
    if (index->writer || need <= *capacity) return SL_OK;
    const size_t most = *capacity + *capacity / 2, room = need > most ? need : most;
    uint32_t *larger = sl_mem_array(&index->graph.allocator, room, width * sizeof(uint32_t), &status);
    SL_TRY(status);
    if (*capacity) memcpy(larger, *array, *capacity * width * sizeof(uint32_t));
    sl_version_release(index, &index->graph.allocator, *array, *capacity * width * sizeof(uint32_t));
    *array = larger;
    *capacity = room;
    return SL_OK;
}

static uint32_t level_among(const sl_graph *graph, size_t node, size_t first, const uint8_t *levels) {
    return levels ? levels[node - first] : sl_level_of(graph, (uint32_t)node);
}

sl_upper_size sl_upper_count(const sl_graph *graph, size_t first, size_t n, const uint8_t *levels) {
    sl_upper_size size = {0, 0};
    for (size_t node = first; node < n; node++) {
        const uint32_t level = level_among(graph, node, first, levels);
        size.count += level > 0;
        size.rows += level;
    }
    return size;
}

/* Sets where the next slot's rows begin. Readers may be reading the last start, which is there already. */
static void put_start(sl_upper *upper) {
    if (upper->start[upper->count] != (uint32_t)upper->rows) upper->start[upper->count] = (uint32_t)upper->rows;
}

sl_status sl_upper_extend(sl_index *index, size_t first, size_t n, const uint8_t *levels) {
    sl_upper *upper = &index->graph.upper;
    const sl_upper_size more = sl_upper_count(&index->graph, first, n, levels);
    const size_t old_count = upper->count, old_rows = upper->rows;
    const size_t count = old_count + more.count, rows = old_rows + more.rows;
    if (rows >= SL_NONE) return sl_fail(SL_ELIMIT, "the upper layers need more than 2^32 - 2 rows; use a larger m");
    SL_TRY(grow_array(index, &upper->nodes, &upper->nodes_capacity, count, 1));
    SL_TRY(grow_array(index, &upper->start, &upper->start_capacity, count + 1, 1));
    SL_TRY(grow_array(index, &upper->links, &upper->rows_capacity, rows, index->graph.m));
    SL_TRY(sl_publish_reserve_upper(index, count - old_count, rows - old_rows));
    if (more.rows > 0)
        memset(upper->links + old_rows * index->graph.m, 0xff, more.rows * index->graph.m * sizeof(uint32_t));
    for (size_t node = first; node < n; node++) {
        const uint32_t level = level_among(&index->graph, node, first, levels);
        if (level == 0) continue;
        upper->nodes[upper->count] = (uint32_t)node;
        put_start(upper);
        upper->count++;
        upper->rows += level;
    }
    put_start(upper);
    if (!more.rows) return SL_OK;
    sl_index_touch(index, upper->nodes + old_count, (upper->count - old_count) * sizeof(uint32_t));
    sl_index_touch(index, upper->start + old_count, (upper->count - old_count + 1) * sizeof(uint32_t));
    sl_index_touch(index, upper->links + old_rows * index->graph.m,
                   (upper->rows - old_rows) * index->graph.m * sizeof(uint32_t));
    return SL_OK;
}

size_t sl_upper_copy_size(const sl_graph *graph) {
    const sl_upper *own = &graph->upper;
    return (2 * own->count + 1 + own->rows * graph->m) * sizeof(uint32_t);
}

sl_upper sl_upper_lay_out(const sl_graph *graph, void *block, sl_copying parts[SL_UPPER_PARTS]) {
    const sl_upper *own = &graph->upper;
    const size_t word = sizeof(uint32_t);
    uint32_t *nodes = block, *start = nodes + own->count, *links = start + own->count + 1;
    parts[0] = (sl_copying){own->nodes, nodes, own->count * word};
    parts[1] = (sl_copying){own->start, start, (own->count + 1) * word};
    parts[2] = (sl_copying){own->links, links, own->rows * graph->m * word};
    return (sl_upper){.nodes = nodes, .start = start, .links = links, .count = own->count, .rows = own->rows};
}

/* The first slot whose node is `node` or larger. */
static size_t slot_from(const sl_upper *upper, size_t node) {
    size_t low = 0, high = upper->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (upper->nodes[middle] < node)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void sl_upper_truncate(sl_graph *graph, size_t first) {
    sl_upper *upper = &graph->upper;
    if (upper->count == 0) return;
    upper->count = slot_from(upper, first);
    /* A mapped file may hold any number here. */
    size_t rows = upper->start[upper->count];
    if (rows < upper->rows) upper->rows = rows;
}

uint32_t sl_slot_of(const sl_graph *graph, uint32_t node) {
    size_t slot = slot_from(&graph->upper, node);
    return slot < graph->upper.count && graph->upper.nodes[slot] == node ? (uint32_t)slot : SL_NONE;
}

uint32_t sl_level_and_slot(const sl_graph *graph, uint32_t node, uint32_t *slot) {
    const uint32_t *start = graph->upper.start;
    *slot = sl_slot_of(graph, node);
    uint32_t levels = *slot == SL_NONE ? 0 : start[*slot + 1] - start[*slot];
    return levels <= SL_MAX_LEVEL ? levels : SL_MAX_LEVEL;
}

void sl_upper_free(sl_graph *graph) {
    sl_upper *upper = &graph->upper;
    SL_FREE_ARRAY(&graph->allocator, upper->nodes, upper->nodes_capacity);
    SL_FREE_ARRAY(&graph->allocator, upper->start, upper->start_capacity);
    SL_FREE_ARRAY(&graph->allocator, upper->links, upper->rows_capacity * graph->m);
    *upper = (sl_upper){0};
}
