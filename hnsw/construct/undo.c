#include "hnsw/construct/undo.h"

#include "hnsw/construct/link_rows.h"
#include "hnsw/construct/reclaim.h"
#include "hnsw/graph/entry.h"
#include "hnsw/graph/free_nodes.h"
#include "hnsw/graph/ids.h"
#include "hnsw/graph/links.h"
#include "hnsw/graph/publish.h"
#include "hnsw/graph/upper.h"

#include <string.h>

/* Removes links to ids from `first` on from a list, and closes the gaps. Returns whether they were more than half of
 * it. */
static int drop_links(const sl_index *index, uint32_t *links, size_t degree, uint32_t first) {
    uint32_t keep[2 * SL_MAX_M];
    size_t length = 0, kept = 0;
    for (; length < degree && links[length] != SL_NONE; length++)
        if (links[length] < first) keep[kept++] = links[length];
    if (kept == length) return 0;
    if (sl_index_is_direct(index)) {
        sl_links_replace(index, links, degree, keep, kept);
    } else {
        memcpy(links, keep, kept * sizeof *links);
        memset(links + kept, 0xff, (length - kept) * sizeof *links);
        sl_index_touch(index, links, degree * sizeof *links);
    }
    return 2 * kept < length;
}

/* Links all nodes of the index anew, as if they had come at once. */
static void link_anew(const sl_build *build) {
    sl_index *index = build->index;
    sl_build anew = *build;
    size_t upper_bytes = index->graph.upper.rows * index->graph.m * sizeof(uint32_t);
    sl_build_clear_links(index, 0, index->graph.n);
    if (upper_bytes) memset(index->graph.upper.links, 0xff, upper_bytes);
    sl_index_touch(index, index->graph.upper.links, upper_bytes);
    anew.first = 0;
    anew.ahead = NULL;
    anew.n = anew.appended = index->graph.n;
    anew.builder = SL_BUILDER_AUTO;
    sl_progress_start(&anew.progress, NULL, NULL, 0);
    (void)sl_build_link_rows(&anew);
}

/* Inserts all nodes again that are in the graph. Free places stay out of it. */
static void insert_anew(const sl_build *build) {
    const sl_graph *graph = &build->index->graph;
    for (size_t node = 0; node < graph->n; node++)
        if (!sl_is_out(graph, node)) sl_insert_node(&build->inserts[0], (uint32_t)node);
}

/* The lists of the removed nodes, from `first` on, are scratch for numbers of nodes. Returns the place of number i. */
static uint32_t *scratch_at(const sl_graph *graph, size_t first, size_t i) {
    return sl_links(graph, first + i / graph->m0) + i % graph->m0;
}

void sl_build_undo(sl_build *build, sl_entry entry, uint64_t next_id) {
    sl_index *index = build->index;
    uint32_t first = (uint32_t)build->first;
    const sl_new_ids rows = {.n = build->n, .places = build->places};
    sl_publish_linked(index, 0);
    /* The removed nodes' lists have room for these numbers, since each dropped link was made for a link of theirs. A
     * damaged file may hold more. */
    const size_t room = build->appended * index->graph.m0;
    size_t poor = 0; /* nodes left with few links */
    for (uint32_t node = 0; node < first; node++) {
        if (!drop_links(index, sl_links(&index->graph, node), index->graph.m0, first)) continue;
        if (poor < room) *scratch_at(&index->graph, first, poor) = node;
        poor++;
    }
    sl_upper_truncate(&index->graph, first);
    for (size_t row = 0; row < index->graph.upper.rows; row++)
        (void)drop_links(index, index->graph.upper.links + row * index->graph.m, index->graph.m,
                         (uint32_t)index->graph.upper.count);
    index->graph.n = first;
    if (index->ordered > first) index->ordered = first;
    sl_ids_undo(index, &rows, next_id);
    sl_entry_set(index, entry.level, entry.level ? entry.slot : entry.node);
    int most = poor > first / 2 || poor > room;
#pragma omp parallel for schedule(dynamic, SL_BUILD_CHUNK)                                                             \
    num_threads((int)build->threads) if (build->threads > 1 && !most)
    for (size_t i = 0; i < poor; i++)
        if (!most) sl_insert_node(&build->inserts[sl_thread_number()], *scratch_at(&index->graph, first, i));
    sl_build_clear_links(index, first, build->appended);
    if (most) sl_reclaim_stop(index); /* lists that are made anew name leaving nodes again */
    if (most && (build->places || index->free.count))
        insert_anew(build);
    else if (most)
        link_anew(build);
}
