#include "hnsw/index/open_check.h"

#include "base/crew.h"
#include "base/failure.h"
#include "hnsw/graph/checksums.h"
#include "hnsw/graph/entry.h"
#include "hnsw/graph/partition.h"
#include "hnsw/graph/tombstones.h"

/* Nodes a thread takes at a time. */
enum { RANGE = 4096 };

/* Returns whether any link is neither a vector nor the end of a list. SL_NONE is the largest word, so SL_NONE + 1 is 0
 * and passes. Without branches, compilers check many links at once. */
static int has_stray(const uint32_t *links, size_t count, uint32_t n) {
    uint32_t stray = 0;
    for (size_t i = 0; i < count; i++)
        stray |= links[i] + 1 > n;
    return stray != 0;
}

typedef struct sl_node_check {
    const sl_graph *graph;
    sl_failure failure; /* of the first node with a fault */
} sl_node_check;

/* In memory, the lists of consecutive nodes lie one behind the other. */
static int has_stray_links(const sl_graph *graph, size_t from, size_t to) {
    return has_stray(sl_links(graph, from), (to - from) * graph->m0, (uint32_t)graph->n);
}

static int has_id_beyond(const sl_graph *graph, size_t from, size_t to) {
    int beyond = 0;
    for (size_t node = from; node < to; node++)
        beyond |= sl_id_of(graph, (uint32_t)node) >= graph->next_id;
    return beyond;
}

static uint32_t first_stray(const uint32_t *links, uint32_t n) {
    while (!has_stray(links, 1, n))
        links++;
    return *links;
}

static sl_status check_node(const sl_graph *graph, size_t node) {
    if (has_id_beyond(graph, node, node + 1))
        return sl_fail(SL_ECORRUPT, "vector %zu has an id beyond the largest", node);
    if (has_stray_links(graph, node, node + 1))
        return sl_fail(SL_ECORRUPT, "vector %zu has a link to %u, out of range", node,
                       first_stray(sl_links(graph, node), (uint32_t)graph->n));
    return SL_OK;
}

/* Checks the range as a whole first, because few files have a fault. */
static void check_range(void *ctx, size_t from, size_t to) {
    sl_node_check *nodes = ctx;
    if (!has_stray_links(nodes->graph, from, to) && !has_id_beyond(nodes->graph, from, to)) return;
    for (size_t node = from; node < to && !sl_failure_before(&nodes->failure, node); node++)
        sl_failure_keep(&nodes->failure, node, check_node(nodes->graph, node));
}

static sl_status check_nodes(const sl_graph *graph, size_t threads) {
    sl_node_check nodes = {.graph = graph};
    sl_failure_init(&nodes.failure);
    sl_crew_run(threads, graph->n, RANGE, check_range, &nodes);
    return sl_failure_pass(&nodes.failure);
}

static sl_status check_upper(const sl_graph *graph) {
    const sl_upper *upper = &graph->upper;
    sl_entry entry = graph->n ? sl_entry_get(graph) : (sl_entry){0, SL_NONE, 0};
    size_t first = upper->count ? upper->start[0] : 0, end = upper->count ? upper->start[upper->count] : 0;
    if (first != 0 || end != upper->rows ||
        (entry.level && upper->start[entry.slot + 1] - upper->start[entry.slot] != entry.level))
        return sl_fail(SL_ECORRUPT, "the upper layers do not fit together");
    for (size_t slot = 0; slot < upper->count; slot++)
        if (upper->nodes[slot] >= graph->n || (slot && upper->nodes[slot] <= upper->nodes[slot - 1]) ||
            upper->start[slot] >= upper->start[slot + 1] || upper->start[slot + 1] > upper->rows ||
            upper->start[slot + 1] - upper->start[slot] > SL_MAX_LEVEL)
            return sl_fail(SL_ECORRUPT, "record %zu of the upper layers is broken", slot);
    for (size_t row = 0; row < upper->rows; row++)
        if (has_stray(upper->links + row * graph->m, graph->m, (uint32_t)upper->count))
            return sl_fail(SL_ECORRUPT, "row %zu of the upper layers has a link out of range", row);
    return SL_OK;
}

sl_status sl_open_check(const sl_graph *graph, size_t threads) {
    sl_checksums_found found = sl_checksums_check(graph, threads, NULL, 0, NULL);
    if (found.bad)
        return sl_fail(SL_ECORRUPT, "%zu records are damaged, the first that of id %llu; make it or copy it again",
                       found.bad, (unsigned long long)found.first);
    if (graph->arrays[SL_ARRAY_PROJECTION].at && !sl_coarse_is_finite(&graph->coarse))
        return sl_fail(SL_ECORRUPT, "the projection is not finite");
    SL_TRY(check_nodes(graph, threads));
    SL_TRY(check_upper(graph));
    SL_TRY(sl_tombstones_check(graph));
    return sl_partitions_check(graph);
}
