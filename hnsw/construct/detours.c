#include "hnsw/construct/detours.h"

#include <string.h>

/* Places of the hash table, and the most open ends. */
enum { PLACES_LOG2 = 12, PLACES = 1 << PLACES_LOG2, MOST_OPEN = 1024 };

sl_status sl_detours_init(sl_detours *detours, const sl_graph *graph) {
    const sl_allocator *allocator = &graph->allocator;
    sl_status status = SL_OK;
    *detours = (sl_detours){.graph = graph};
    detours->near = sl_mem_array(allocator, PLACES, sizeof *detours->near, &status);
    detours->own = sl_mem_array(allocator, graph->m0, sizeof *detours->own, &status);
    detours->dropped = sl_mem_array(allocator, graph->m0, sizeof *detours->dropped, &status);
    detours->open = sl_mem_array(allocator, MOST_OPEN, sizeof *detours->open, &status);
    if (status != SL_OK) sl_detours_free(detours);
    return status;
}

void sl_detours_free(sl_detours *detours) {
    if (!detours->graph) return;
    const sl_allocator *allocator = &detours->graph->allocator;
    SL_FREE_ARRAY(allocator, detours->near, PLACES);
    SL_FREE_ARRAY(allocator, detours->own, detours->graph->m0);
    SL_FREE_ARRAY(allocator, detours->dropped, detours->graph->m0);
    SL_FREE_ARRAY(allocator, detours->open, MOST_OPEN);
    detours->graph = NULL;
}

void sl_detours_watch(sl_detours *detours, size_t first) {
    detours->watches = 1;
    detours->first = (uint32_t)first;
}

void sl_detours_open(sl_detours *detours, uint32_t from, uint32_t to) {
    if (detours->open_count == MOST_OPEN)
        detours->too_many = 1;
    else
        detours->open[detours->open_count++] = (sl_open_end){from, to};
}

/* Returns a node's place in the table. Two nodes may share a place. The later one then replaces the earlier one, and
 * the earlier one counts as far away. */
static uint32_t *place_of(const sl_detours *detours, uint32_t node) {
    return &detours->near[node * 2654435761u >> (32 - PLACES_LOG2)];
}

static int is_near(const sl_detours *detours, uint32_t node) {
    return *place_of(detours, node) == node;
}

static void prefetch_lists(const sl_graph *graph, const uint32_t *nodes, size_t count) {
    for (size_t i = 0; i < count; i++)
        sl_prefetch(sl_links(graph, nodes[i]), graph->m0 * sizeof *nodes);
}

/* Fills the table with the nodes one or two links away from a node. */
static void fill_near(const sl_detours *detours, uint32_t node) {
    const sl_graph *graph = detours->graph;
    const sl_layer layer = sl_layer_at(graph, 0);
    const size_t count = sl_links_known(&layer, sl_links(graph, node), detours->own);
    prefetch_lists(graph, detours->own, count);
    prefetch_lists(graph, detours->dropped, detours->dropped_count);
    memset(detours->near, 0xff, PLACES * sizeof *detours->near);
    for (size_t i = 0; i < count; i++) {
        const uint32_t *links = sl_links(graph, detours->own[i]);
        for (size_t j = 0; j < graph->m0 && sl_link_load(links + j) != SL_NONE; j++)
            *place_of(detours, sl_link_load(links + j)) = sl_link_load(links + j);
    }
    for (size_t i = 0; i < count; i++)
        *place_of(detours, detours->own[i]) = detours->own[i];
}

/* Reads two words at a time, since a list has an even number of words. */
static int has_link(const sl_graph *graph, uint32_t from, uint32_t to) {
    const uint32_t *links = sl_links(graph, from);
    for (size_t i = 0; i < graph->m0; i += 2) {
        const int first = sl_link_load(links + i) == to, second = sl_link_load(links + i + 1) == to;
        if (first | second) return 1;
    }
    return 0;
}

/* Returns whether a path leads from a node of the table to `to`, with `over` nodes in between. Goes backwards, and
 * tries only nodes in the list of `to`, since many nodes that link to `to` are in its list. */
static int is_linked_from_near(const sl_detours *detours, uint32_t to, unsigned over) {
    const sl_graph *graph = detours->graph;
    const uint32_t *links = sl_links(graph, to);
    for (size_t i = 0; i < graph->m0; i++) {
        const uint32_t near = sl_link_load(links + i);
        if (near == SL_NONE) break;
        if (near < graph->n && (over || is_near(detours, near)) && has_link(graph, near, to) &&
            (!over || is_linked_from_near(detours, near, over - 1)))
            return 1;
    }
    return 0;
}

static int has_detour(const sl_detours *detours, uint32_t to) {
    return is_near(detours, to) || is_linked_from_near(detours, to, 0) || is_linked_from_near(detours, to, 1);
}

void sl_detours_check(sl_detours *detours, uint32_t node) {
    size_t left = 0;
    if (!detours->dropped_count) return;
    /* The list is written before other lists are read. If each of two threads drops a link of the other's path, at
     * least one of the threads sees it. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    fill_near(detours, node);
    for (size_t i = 0; i < detours->dropped_count; i++)
        if (!has_detour(detours, detours->dropped[i])) detours->dropped[left++] = detours->dropped[i];
    detours->dropped_count = left;
}
