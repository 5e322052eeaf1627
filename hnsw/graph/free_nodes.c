#include "hnsw/graph/free_nodes.h"

#include "hnsw/graph/arrays.h"
#include "hnsw/graph/checksums.h"
#include "hnsw/graph/links.h"
#include "hnsw/graph/tombstones.h"
#include "hnsw/graph/upper.h"

#include <string.h>

static size_t words_of(size_t capacity) {
    return capacity / 64 + 1;
}

/* Threads that read statistics may read the count meanwhile. */
static void put_count(sl_node_set *set, size_t count) {
    __atomic_store_n(&set->count, count, __ATOMIC_RELAXED);
}

sl_status sl_node_set_reserve(const sl_index *index, sl_node_set *set) {
    const sl_allocator *allocator = &index->graph.allocator;
    sl_status status = SL_OK;
    if (set->bits && set->capacity >= index->graph.capacity) return SL_OK;
    uint64_t *bits = sl_mem_array(allocator, words_of(index->graph.capacity), sizeof *bits, &status);
    SL_TRY(status);
    if (set->bits) memcpy(bits, set->bits, words_of(set->capacity) * sizeof *bits);
    if (set->bits) SL_FREE_ARRAY(allocator, set->bits, words_of(set->capacity));
    set->bits = bits;
    set->capacity = index->graph.capacity;
    return SL_OK;
}

void sl_node_set_free(const sl_index *index, sl_node_set *set) {
    if (set->bits) SL_FREE_ARRAY(&index->graph.allocator, set->bits, words_of(set->capacity));
    set->bits = NULL;
    set->capacity = 0;
    put_count(set, 0);
}

void sl_node_set_add(sl_node_set *set, size_t node) {
    put_count(set, set->count + !sl_node_set_has(set, node));
    set->bits[node / 64] |= (uint64_t)1 << (node % 64);
}

void sl_node_set_add_first(sl_node_set *set, size_t n) {
    memset(set->bits, 0xff, n / 64 * sizeof *set->bits);
    if (n % 64) set->bits[n / 64] = ((uint64_t)1 << (n % 64)) - 1;
    put_count(set, n);
}

void sl_node_set_remove(sl_node_set *set, size_t node) {
    put_count(set, set->count - (size_t)sl_node_set_has(set, node));
    set->bits[node / 64] &= ~((uint64_t)1 << (node % 64));
}

size_t sl_node_set_next(const sl_node_set *set, sl_range range) {
    const size_t end = range.end < set->capacity ? range.end : set->capacity;
    for (size_t node = range.first; set->count && node < end; node = (node / 64 + 1) * 64) {
        const uint64_t rest = set->bits[node / 64] >> (node % 64);
        if (rest) node += (size_t)__builtin_ctzll(rest);
        if (rest) return node < end ? node : range.end;
    }
    return range.end;
}

sl_status sl_free_nodes_load(sl_index *index) {
    const sl_graph *graph = &index->graph;
    if (!index->file_lives.nodes || index->free.bits || !graph->free_count) return SL_OK;
    SL_TRY(sl_lives_reserve(index));
    SL_TRY(sl_node_set_reserve(index, &index->free));
    const uint64_t *tombstones = sl_tombstones(graph);
    /* A damaged file may have more of them than deleted nodes. */
    for (size_t node = 0; node < graph->n && index->free.count < graph->deleted_count; node++) {
        if (node % 64 == 0 && !tombstones[node / 64]) node += 63;
        if (node >= graph->n || !sl_has_tombstone(tombstones, node) || index->file_lives.nodes[node].born != SL_UNBORN)
            continue;
        sl_node_set_add(&index->free, node);
        graph->lives.nodes[node].born = SL_UNBORN;
    }
    index->graph.free_count = index->free.count;
    return SL_OK;
}

void sl_node_wipe(sl_index *index, uint32_t node) {
    const sl_graph *graph = &index->graph;
    uint32_t slot, levels = sl_level_and_slot(graph, node, &slot);
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++) {
        const sl_array *array = &graph->arrays[kind];
        if (!array->at || !(sl_array_lines[kind].flags & SL_ARRAY_MOVED) || kind == SL_ARRAY_LINKS) continue;
        memset(sl_array_row(graph, kind, node), 0, array->size);
        sl_index_touch(index, sl_array_row(graph, kind, node), array->size);
    }
    if (sl_has(graph, SL_ARRAY_IDS)) {
        uint8_t *const at = sl_array_row(graph, SL_ARRAY_IDS, node);
        if (graph->arrays[SL_ARRAY_IDS].width == sizeof(uint64_t))
            sl_id_store(graph, node, 0);
        else /* of a file */
            __atomic_store_n((uint32_t *)(void *)at, 0, __ATOMIC_RELAXED);
        sl_index_touch(index, at, graph->arrays[SL_ARRAY_IDS].size);
    }
    if (graph->arrays[SL_ARRAY_CHECKSUMS].at) {
        sl_checksum_row(graph, node, sl_array_row(graph, SL_ARRAY_CHECKSUMS, node));
        sl_index_touch(index, sl_checksum_at(graph, node), sizeof(uint32_t));
    }
    sl_links_store(index, sl_links(graph, node), graph->m0, NULL, 0);
    for (uint32_t level = 1; level <= levels; level++) {
        const sl_layer layer = sl_layer_at(graph, level);
        uint32_t *links = sl_layer_links(&layer, slot);
        if (links) sl_links_store(index, links, graph->m, NULL, 0);
    }
}
