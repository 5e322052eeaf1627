#include "hnsw/construct/reach.h"

#include "hnsw/graph/entry.h"
#include "hnsw/graph/free_nodes.h"
#include "hnsw/graph/reserve.h"

#include <string.h>

/* ef of a walk that only looks for a remaining path. */
enum { NARROW_EF = 16 };

static size_t bit_words(size_t bits) {
    return bits / 64 + 1;
}

size_t sl_reach_bytes(const sl_graph *graph, size_t capacity, int with_tree) {
    size_t words = bit_words(capacity) + (with_tree ? bit_words(capacity * graph->m0) : 0);
    return words * sizeof(uint64_t) + capacity * sizeof(uint32_t);
}

sl_status sl_reach_init(sl_reach *reach, const sl_graph *graph, size_t capacity, int with_tree) {
    const sl_allocator *allocator = &graph->allocator;
    sl_status status = SL_OK;
    *reach = (sl_reach){.graph = graph, .capacity = capacity};
    reach->reached = sl_mem_array(allocator, bit_words(capacity), sizeof *reach->reached, &status);
    reach->queue = sl_mem_array(allocator, capacity, sizeof *reach->queue, &status);
    if (with_tree) reach->tree = sl_mem_array(allocator, bit_words(capacity * graph->m0), sizeof *reach->tree, &status);
    if (status != SL_OK) sl_reach_free(reach);
    return status;
}

void sl_reach_free(sl_reach *reach) {
    if (!reach->graph) return;
    const sl_allocator *allocator = &reach->graph->allocator;
    SL_FREE_ARRAY(allocator, reach->reached, bit_words(reach->capacity));
    SL_FREE_ARRAY(allocator, reach->queue, reach->capacity);
    SL_FREE_ARRAY(allocator, reach->tree, bit_words(reach->capacity * reach->graph->m0));
    reach->graph = NULL;
}

static void mark_reached(sl_reach *reach, uint32_t node) {
    reach->reached[node / 64] |= (uint64_t)1 << (node % 64);
    reach->queue[reach->tail++] = node;
}

static void mark_tree(sl_reach *reach, size_t link) {
    reach->tree[link / 64] |= (uint64_t)1 << (link % 64);
}

/* Marks all nodes that links reach from the nodes in the queue. */
static void follow_links(sl_reach *reach) {
    const sl_graph *graph = reach->graph;
    while (reach->head < reach->tail) {
        uint32_t node = reach->queue[reach->head++];
        const uint32_t *links = sl_links(graph, node);
        size_t first = (size_t)node * graph->m0;
        for (size_t i = 0; i < graph->m0; i++) {
            uint32_t to = sl_link_load(links + i);
            if (to == SL_NONE) break;
            if (to >= graph->n || sl_reach_has(reach, to)) continue;
            if (reach->tree) mark_tree(reach, first + i);
            mark_reached(reach, to);
        }
    }
}

size_t sl_reach_from_entry(sl_reach *reach) {
    const sl_graph *graph = reach->graph;
    if (graph->n == 0) return 0;
    uint32_t node = sl_entry_get(graph).node;
    if (node >= graph->n) return 0;
    mark_reached(reach, node);
    follow_links(reach);
    return reach->tail;
}

/* Makes `from` link to `to`, in a free place. If there is none and `replaces` is set, the link replaces one that isn't
 * in the tree, so all reached nodes stay reached. Returns 0 if `from` has no place. */
static int attach_to(sl_reach *reach, const sl_insert *insert, uint32_t from, uint32_t to, int replaces) {
    const sl_graph *graph = reach->graph;
    size_t first = (size_t)from * graph->m0, place = SIZE_MAX;
    uint32_t *links = sl_links(graph, from);
    for (size_t i = 0; i < graph->m0; i++) {
        if (sl_link_load(links + i) == SL_NONE) {
            place = i;
            break;
        }
        /* The last such link is replaced, since lists are written best first. */
        if (replaces && !(reach->tree[(first + i) / 64] >> ((first + i) % 64) & 1)) place = i;
    }
    if (place == SIZE_MAX) return 0;
    sl_link_store(links + place, to);
    sl_index_touch(insert->index, links + place, sizeof to);
    mark_tree(reach, first + place);
    mark_reached(reach, to);
    return 1;
}

/*
 * Links to an unreached node from a reached one near it, which a walk finds. The descent may end on a node that layer 0
 * doesn't reach, so the pool may have unreached nodes. These are passed over. If no node of the pool has a place, any
 * reached node with a place will do. There always is one, since a tree has fewer edges than nodes.
 *
 * Under IP many short vectors are in no list. The walk finds long vectors, whose links all searches use. So a link to a
 * short vector takes free places first, of any reached node, and replaces links only if there are none.
 */
static void attach_near(sl_reach *reach, sl_insert *insert, uint32_t node) {
    const sl_graph *graph = reach->graph;
    sl_walk *walk = &insert->walk;
    int replaces = graph->codec.metric != SL_METRIC_IP;
    sl_walk_set_query_node(walk, graph, node);
    sl_walk_layer(walk, 0, sl_range_of_id(sl_walk_descend(walk, sl_entry_get(graph), 0)), graph->ef_construction);
    sl_pool_finish(&walk->pool, graph->ef_construction);
    sl_pool_sort(&walk->pool);
    for (size_t i = 0; i < walk->pool.size; i++) {
        uint32_t near = sl_pool_id(walk->pool.keys[i]);
        if (near != node && sl_reach_has(reach, near) && attach_to(reach, insert, near, node, replaces)) return;
    }
    for (; replaces < 2; replaces++)
        for (size_t i = reach->tail; i-- > 0;)
            if (attach_to(reach, insert, reach->queue[i], node, replaces)) return;
}

int sl_stays_out(const sl_index *index, size_t node) {
    return sl_node_set_has(&index->leaving, node) || sl_is_out(&index->graph, node);
}

size_t sl_reach_repair(sl_reach *reach, sl_insert *insert) {
    const sl_graph *graph = reach->graph;
    size_t attached = 0;
    for (size_t node = 0; node < graph->n && reach->tail < graph->n; node++) {
        if (sl_reach_has(reach, (uint32_t)node) || sl_stays_out(insert->index, node)) continue;
        attach_near(reach, insert, (uint32_t)node);
        attached++;
        follow_links(reach);
    }
    return attached;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Open ends
 * ------------------------------------------------------------------------------------------------------------- */

/* Appends a link to the first of `count` lists that has a free place. If it meets a list with the link first, which a
 * narrow walk may have missed, it appends nothing. Returns whether a list then has the link. */
static int append_to_any(const sl_index *index, const uint32_t *nodes, size_t count, uint32_t to) {
    const sl_graph *graph = &index->graph;
    for (size_t i = 0; i < count; i++) {
        const uint32_t *const end = sl_links(graph, nodes[i]) + graph->m0;
        uint32_t *links = sl_links(graph, nodes[i]);
        while (links < end && sl_link_load(links) != SL_NONE && sl_link_load(links) != to)
            links++;
        if (nodes[i] == to || links == end) continue;
        if (sl_link_load(links) == to) return 1;
        sl_link_store(links, to);
        sl_index_touch(index, links, sizeof *links);
        sl_index_fence(index);
        return 1;
    }
    return 0;
}

int sl_reach_append(const sl_index *index, uint32_t from, uint32_t to) {
    return append_to_any(index, &from, 1, to);
}

/* Appends a link to `to` to the nearest node of the pool whose list has room. If all are full, tries the nodes that
 * these link to. */
static int append_near(sl_insert *insert, uint32_t to) {
    const sl_layer layer = sl_layer_at(&insert->index->graph, 0);
    sl_pool *pool = &insert->walk.pool;
    sl_pool_sort(pool);
    for (size_t i = 0; i < pool->size; i++) {
        if (sl_reach_append(insert->index, sl_pool_id(pool->keys[i]), to)) return 1;
    }
    for (size_t i = 0; i < pool->size; i++) {
        const size_t count = sl_links_known(&layer, sl_links(layer.graph, sl_pool_id(pool->keys[i])), insert->own);
        if (append_to_any(insert->index, insert->own, count, to)) return 1;
    }
    return 0;
}

/* Returns whether the walk visited a node. In a large index nodes share visited marks, so there only the pool counts.
 */
static int was_visited(const sl_walk *walk, uint32_t node) {
    if (walk->graph->n <= SL_VISITED_MOST) return sl_visited_has(&walk->visited, node);
    for (size_t i = 0; i < walk->pool.size; i++)
        if (sl_pool_id(walk->pool.keys[i]) == node) return 1;
    return 0;
}

/* Walks towards a node. Returns whether the walk reached it. The pool then has the nodes that the walk found
 * nearest. */
static int walk_reaches(sl_walk *walk, uint32_t start, uint32_t node, size_t ef) {
    sl_walk_layer(walk, 0, sl_range_of_id(start), ef);
    sl_pool_finish(&walk->pool, ef);
    return was_visited(walk, node);
}

/* Looks for a path to an open end, and appends a link to the end if there is no path. The walk starts at end.from. For
 * a new node it starts at the end of a descent, or at the entry point if that end is new, since any old node may lead
 * to a new one. A narrow walk finds most paths, so it is tried first. */
static int close_end(sl_insert *insert, sl_open_end end, const sl_detours *detours) {
    const sl_graph *graph = &insert->index->graph;
    const size_t ef = graph->ef_construction;
    sl_walk *walk = &insert->walk;
    uint32_t start = end.from;
    sl_walk_set_query_node(walk, graph, end.to);
    if (start == SL_NONE) start = sl_walk_descend(walk, sl_entry_get(graph), 0);
    if (end.from == SL_NONE && sl_detours_is_new(detours, start)) start = sl_entry_get(graph).node;
    if (ef > NARROW_EF && walk_reaches(walk, start, end.to, NARROW_EF)) return 1;
    return walk_reaches(walk, start, end.to, ef) || append_near(insert, end.to);
}

int sl_reach_close(sl_insert *insert, sl_detours *detours) {
    int closed = !detours->too_many;
    for (size_t i = 0; i < detours->open_count && closed; i++)
        closed = close_end(insert, detours->open[i], detours);
    detours->open_count = 0;
    return closed;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The whole proof
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status prove_all(sl_index *index) {
    sl_reach reach = {0};
    sl_insert insert = {0};
    void *locks = NULL;
    sl_status status;
    SL_TRY_GOTO(sl_reach_init(&reach, &index->graph, index->graph.n, 1), done);
    if (sl_reach_from_entry(&reach) < index->graph.n) {
        SL_TRY_GOTO(sl_mem_alloc(&index->graph.allocator, sizeof(sl_build_locks), &locks), done);
        SL_TRY_GOTO(sl_insert_init(&insert, index, locks), done);
        sl_reach_repair(&reach, &insert);
    }
    __atomic_store_n(&index->unverified, 0, __ATOMIC_RELEASE);
    if (!index->reclaim) index->swept = 0; /* its work may undo the proof */
done:
    sl_insert_free(&insert);
    sl_mem_free(&index->graph.allocator, locks, sizeof(sl_build_locks));
    sl_reach_free(&reach);
    return status;
}

sl_status sl_reach_settle(sl_index *index) {
    if (index->published) return SL_OK;
    if (!__atomic_load_n(&index->unverified, __ATOMIC_ACQUIRE)) return SL_OK;
    /* A repair writes to the file itself. A child of fork() may not do that. */
    if (sl_index_is_direct(index)) SL_TRY(sl_index_writable(index));
    sl_spin_lock_owned(&index->settling);
    sl_status status = __atomic_load_n(&index->unverified, __ATOMIC_ACQUIRE) ? prove_all(index) : SL_OK;
    sl_spin_unlock(&index->settling);
    return status;
}

sl_status sl_reach_settle_swept(sl_index *index) {
    if (index->swept) index->unverified++;
    return sl_reach_settle(index);
}
