#include "hnsw/graph/ids.h"

#include "base/id_hash.h"
#include "base/probe.h"
#include "hnsw/graph/arrays.h"
#include "hnsw/graph/view.h"

#include <string.h>

/* Map entries and ids are prefetched this many ids ahead, so that memory serves several look-ups at once. */
enum { AHEAD_PLACE = 32, AHEAD_ID = 16 };
/* Ids looked up while the lock is held once. */
enum { HELD = 4096 };

enum { LEAST_ENTRIES = 64 };

static size_t map_place(const sl_id_map *map, uint64_t id) {
    return (size_t)sl_id_hash(map->seed, id) & (map->size - 1);
}

static void prefetch_place(const sl_id_map *map, uint64_t id) {
    sl_prefetch(&map->entries[map_place(map, id)], sizeof *map->entries);
}

/* Prefetches the id that a look-up compares first. The entry is in the cache already. */
static void prefetch_id(const sl_graph *graph, const sl_id_map *map, uint64_t id) {
    const uint32_t node = map->entries[map_place(map, id)];
    if (node != SL_NONE) sl_id_prefetch(graph, node);
}

/* The entry of an id, or the empty entry where it belongs. */
static size_t map_at(const sl_graph *graph, const sl_id_map *map, uint64_t id) {
    SL_PROBE(at, sl_id_hash(map->seed, id), map->size) {
        if (map->entries[at] == SL_NONE || sl_id_of(graph, map->entries[at]) == id) return at;
    }
}

/* The first undeleted node of a chain that has the id. In a file that another process writes, nodes may have got other
 * ids. */
static uint32_t chain_undeleted(const sl_graph *graph, const sl_id_map *map, uint32_t node, uint64_t id) {
    while (node != SL_NONE && (sl_is_deleted(graph, node) || sl_id_of(graph, node) != id))
        node = map->next ? map->next[node] : SL_NONE;
    return node;
}

/* Gives an id to a node, if no undeleted node has it. Returns the node that has it, or SL_NONE.
 * If ids may have several vectors, the node goes to the front of the chain, and deleted nodes there drop out. */
static uint32_t map_put(const sl_graph *graph, sl_id_map *map, uint64_t id, uint32_t node) {
    uint32_t *entry = &map->entries[map_at(graph, map, id)];
    if (map->next) {
        map->next[node] = chain_undeleted(graph, map, *entry, id);
        *entry = node;
        return SL_NONE;
    }
    if (*entry != SL_NONE && !sl_is_deleted(graph, *entry)) return *entry;
    *entry = node;
    return SL_NONE;
}

/* With several vectors an id, the chains lie behind the entries. */
static size_t map_bytes(const sl_graph *graph, size_t size) {
    return (size + (graph->multi ? size / 2 : 0)) * sizeof(uint32_t);
}

size_t sl_ids_bytes(const sl_graph *graph, size_t n) {
    return n * sizeof(uint64_t) + (graph->multi ? 0 : map_bytes(graph, sl_probe_places(n, LEAST_ENTRIES)));
}

static void map_free(sl_index *index) {
    /* Readers may look at `entries` now, so a NULL isn't written again. */
    if (!index->id_map.entries) return;
    sl_mem_free(&index->graph.allocator, index->id_map.entries, map_bytes(&index->graph, index->id_map.size));
    index->id_map.entries = index->id_map.next = NULL;
    index->id_map.size = 0;
}

/* Makes a map of the undeleted nodes among the first n, with room for `room`. Only a damaged file has an id twice: its
 * first node keeps the id, and `*twice` counts the others. */
static sl_status map_fill(const sl_graph *graph, sl_id_map *map, size_t n, size_t room, size_t *twice) {
    void *entries;
    map->size = sl_probe_places(room, LEAST_ENTRIES);
    map->seed = sl_id_seed();
    SL_TRY(sl_mem_alloc(&graph->allocator, map_bytes(graph, map->size), &entries));
    map->entries = entries;
    map->next = graph->multi ? map->entries + map->size : NULL;
    memset(entries, 0xff, map->size * sizeof(uint32_t));
    for (size_t node = sl_next_undeleted(graph, 0); node < n; node = sl_next_undeleted(graph, node + 1)) {
        if (node + AHEAD_PLACE < n) prefetch_place(map, sl_id_of(graph, (uint32_t)(node + AHEAD_PLACE)));
        if (node + AHEAD_ID < n) prefetch_id(graph, map, sl_id_of(graph, (uint32_t)(node + AHEAD_ID)));
        *twice += map_put(graph, map, sl_id_of(graph, (uint32_t)node), (uint32_t)node) != SL_NONE;
    }
    return SL_OK;
}

sl_status sl_ids_count_duplicates(const sl_graph *graph, size_t *duplicates) {
    sl_id_map map = {0};
    *duplicates = 0;
    if (!sl_has(graph, SL_ARRAY_IDS) || graph->multi) return SL_OK;
    SL_TRY(map_fill(graph, &map, graph->n, graph->n, duplicates));
    sl_mem_free(&graph->allocator, map.entries, map_bytes(graph, map.size));
    return SL_OK;
}

static sl_status map_make(sl_index *index, size_t n, size_t room) {
    sl_id_map map = {0};
    size_t twice = 0;
    SL_TRY(map_fill(&index->graph, &map, n, room, &twice));
    map_free(index);
    index->id_map.size = map.size;
    index->id_map.seed = map.seed;
    index->id_map.next = map.next;
    index->id_map.nodes = n;
    __atomic_store_n(&index->id_map.entries, map.entries, __ATOMIC_RELEASE);
    return SL_OK;
}

/* An undeleted node of the id, or SL_NONE. */
static uint32_t find_node(const sl_index *index, uint64_t id) {
    uint32_t node = id < index->graph.n ? (uint32_t)id : SL_NONE;
    if (sl_has(&index->graph, SL_ARRAY_IDS)) node = index->id_map.entries[map_at(&index->graph, &index->id_map, id)];
    if (index->id_map.next) return chain_undeleted(&index->graph, &index->id_map, node, id);
    return node != SL_NONE && !sl_is_deleted(&index->graph, node) ? node : SL_NONE;
}

uint32_t sl_id_next(const sl_index *index, uint32_t node) {
    const sl_id_map *map = &index->id_map;
    if (!map->next) return SL_NONE;
    return chain_undeleted(&index->graph, map, map->next[node], sl_id_of(&index->graph, node));
}

static void find_nodes(const sl_index *index, const uint64_t *ids, size_t n, uint32_t *nodes) {
    const sl_id_map *map = &index->id_map;
    for (size_t i = 0; i < n; i++) {
        if (map->entries && i + AHEAD_PLACE < n) prefetch_place(map, ids[i + AHEAD_PLACE]);
        if (map->entries && i + AHEAD_ID < n) prefetch_id(&index->graph, map, ids[i + AHEAD_ID]);
        nodes[i] = find_node(index, ids[i]);
    }
}

/* Adds nodes that the writing process has published since the last look-up. The map may move, so the caller holds the
 * lock. */
static sl_status map_follow(sl_index *index) {
    sl_graph view;
    sl_id_map *map = &index->id_map;
    size_t n = sl_view_of(index, &view)->n;
    if (!map->entries || map->size < sl_probe_places(n, LEAST_ENTRIES)) SL_TRY(map_make(index, n, n + n / 2));
    for (; map->nodes < n; map->nodes++)
        (void)map_put(&index->graph, map, sl_id_of(&index->graph, (uint32_t)map->nodes), (uint32_t)map->nodes);
    return SL_OK;
}

static sl_status find_nodes_following(sl_index *index, const uint64_t *ids, size_t count, uint32_t *nodes) {
    sl_spin_lock_owned(&index->id_map.lock);
    sl_status status = map_follow(index);
    if (status == SL_OK) find_nodes(index, ids, count, nodes);
    sl_spin_unlock(&index->id_map.lock);
    return status;
}

/* Makes the map, if the index keeps ids and has no map. */
static sl_status map_ensure(sl_index *index) {
    sl_id_map *map = &index->id_map;
    if (!sl_has(&index->graph, SL_ARRAY_IDS) || __atomic_load_n(&map->entries, __ATOMIC_ACQUIRE)) return SL_OK;
    sl_spin_lock_owned(&map->lock);
    sl_status status = map->entries ? SL_OK : map_make(index, index->graph.n, index->graph.n);
    sl_spin_unlock(&map->lock);
    return status;
}

sl_status sl_ids_lookup(sl_index *index, const uint64_t *ids, size_t n, uint32_t *nodes) {
    if (!index->published) {
        SL_TRY(map_ensure(index));
        find_nodes(index, ids, n, nodes);
        return SL_OK;
    }
    for (size_t done = 0; done < n; done += HELD)
        SL_TRY(find_nodes_following(index, ids + done, n - done < HELD ? n - done : HELD, nodes + done));
    return SL_OK;
}

sl_status sl_id_lookup(sl_index *index, uint64_t id, uint32_t *node) {
    return sl_ids_lookup(index, &id, 1, node);
}

sl_status sl_id_find(sl_index *index, uint64_t id, uint32_t *node) {
    SL_TRY(sl_id_lookup(index, id, node));
    return *node != SL_NONE ? SL_OK : sl_id_missing(id);
}

sl_status sl_id_missing(uint64_t id) {
    return sl_fail(SL_ENOTFOUND, "id %llu is not in the index; give ids that were added and not deleted",
                   (unsigned long long)id);
}

void sl_node_list_free(sl_node_list *list, const sl_allocator *allocator) {
    SL_FREE_ARRAY(allocator, list->nodes, list->room);
}

static sl_status list_add(const sl_index *index, uint32_t node, sl_node_list *list) {
    sl_status status = SL_OK;
    list->nodes =
        sl_mem_grow(&index->graph.allocator, list->nodes, &list->room, list->count + 1, sizeof *list->nodes, &status);
    if (status == SL_OK) list->nodes[list->count++] = node;
    return status;
}

sl_status sl_id_nodes(sl_index *index, uint64_t id, sl_node_list *list) {
    sl_status status = SL_OK;
    if (index->published) sl_spin_lock_owned(&index->id_map.lock);
    SL_TRY_GOTO(index->published ? map_follow(index) : map_ensure(index), done);
    for (uint32_t node = find_node(index, id); node != SL_NONE; node = sl_id_next(index, node))
        SL_TRY_GOTO(list_add(index, node, list), done);
done:
    if (index->published) sl_spin_unlock(&index->id_map.lock);
    return status;
}

sl_status sl_index_contains(sl_index *index, uint64_t id, int *found) {
    uint32_t node;
    if (!index || !found) return sl_fail(SL_EINVAL, "index or found is NULL");
    SL_TRY(sl_id_lookup(index, id, &node));
    *found = node != SL_NONE;
    return SL_OK;
}

sl_status sl_index_ids(const sl_index *index, uint64_t *ids, size_t room, size_t *count) {
    if (!index || !count || (room && !ids)) return sl_fail(SL_EINVAL, "index, ids or count is NULL");
    sl_graph view;
    const sl_graph *graph = sl_view_of(index, &view);
    sl_id_map map = {0};
    size_t found = 0, twice = 0;
    if (sl_ids_repeat(graph)) SL_TRY(map_fill(graph, &map, graph->n, graph->n, &twice));
    for (size_t node = 0; (node = sl_next_undeleted(graph, node)) < graph->n; node++) {
        const uint64_t id = sl_id_of(graph, (uint32_t)node);
        if (map.entries && map.entries[map_at(graph, &map, id)] != node) continue;
        if (found < room) ids[found] = id;
        found++;
    }
    sl_mem_free(&graph->allocator, map.entries, map_bytes(graph, map.size));
    *count = found;
    return SL_OK;
}

int sl_ids_are_numbers(const sl_graph *graph, const uint64_t *ids, size_t n) {
    if (sl_has(graph, SL_ARRAY_IDS)) return 0;
    if (!ids) return graph->next_id == graph->n;
    for (size_t i = 0; i < n; i++)
        if (ids[i] != graph->n + i) return 0;
    return 1;
}

/* Replaces the array of ids. */
static void replace_ids(sl_index *index, void *ids, size_t width) {
    sl_mem_free(&index->layer0, index->graph.arrays[SL_ARRAY_IDS].at,
                sl_array_bytes(&index->graph, SL_ARRAY_IDS, index->graph.capacity));
    sl_array_put(&index->graph, SL_ARRAY_IDS, ids, width);
}

/* Replaces implicit or 32-bit ids by an array of 64-bit ids. */
static sl_status make_ids_explicit(sl_index *index) {
    void *block;
    if (index->graph.arrays[SL_ARRAY_IDS].width == sizeof(uint64_t)) return SL_OK;
    SL_TRY(sl_mem_alloc(&index->layer0, index->graph.capacity * sizeof(uint64_t), &block));
    uint64_t *whole = block;
    for (size_t node = 0; node < index->graph.n; node++)
        whole[node] = sl_id_of(&index->graph, (uint32_t)node);
    replace_ids(index, whole, sizeof *whole);
    return SL_OK;
}

/* Restores the ids of the existing nodes. The map may name nodes that don't exist, so it's freed. The array of ids is
 * freed if every id is its node's number. */
static void restore_ids(sl_index *index) {
    size_t node = 0;
    map_free(index);
    if (index->writer) return;
    while (node < index->graph.n && index->graph.next_id == index->graph.n &&
           sl_id_of(&index->graph, (uint32_t)node) == node)
        node++;
    if (node == index->graph.n && index->graph.next_id == index->graph.n) replace_ids(index, NULL, 0);
}

static sl_status refuse_append(sl_index *index, sl_status status) {
    restore_ids(index);
    return status;
}

sl_status sl_ids_append(sl_index *index, const uint64_t *ids, size_t n) {
    if (!ids && index->graph.next_id > UINT64_MAX - n)
        return sl_fail(SL_ELIMIT, "no ids are left after %llu; give ids", (unsigned long long)index->graph.next_id - 1);
    if (sl_ids_are_numbers(&index->graph, ids, n)) {
        index->graph.next_id = index->graph.n + n;
        return SL_OK;
    }
    SL_TRY(make_ids_explicit(index));
    size_t total = index->graph.n + n;
    uint64_t next = index->graph.next_id;
    /* Ids above the largest differ from all others, so no map is needed. */
    if (!ids && !index->id_map.entries) {
        for (size_t i = 0; i < n; i++)
            *sl_id_at(&index->graph, index->graph.n + i) = next++;
        index->graph.next_id = next;
        return SL_OK;
    }
    /* Ids that may have several vectors aren't looked up. */
    const int put = index->id_map.entries || !index->graph.multi;
    if (put && (!index->id_map.entries || index->id_map.size < sl_probe_places(total, LEAST_ENTRIES))) {
        /* A file may have room for a thousand times its nodes. */
        size_t room = index->graph.capacity < 2 * total ? index->graph.capacity : 2 * total;
        sl_status status = map_make(index, index->graph.n, total > room ? total : room);
        if (status != SL_OK) return refuse_append(index, status);
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t id = ids ? ids[i] : index->graph.next_id + i;
        if (id == SL_NO_ID)
            return refuse_append(index, sl_fail(SL_EINVAL, "row %zu: id 2^64 - 1 is reserved; choose another", i));
        *sl_id_at(&index->graph, index->graph.n + i) = id;
        uint32_t other = SL_NONE;
        if (put) other = map_put(&index->graph, &index->id_map, id, (uint32_t)(index->graph.n + i));
        if (other != SL_NONE && other >= index->graph.n)
            return refuse_append(index, sl_fail(SL_EEXIST, "row %zu: id %llu is also that of row %zu; ids must differ",
                                                i, (unsigned long long)id, other - index->graph.n));
        if (other != SL_NONE)
            return refuse_append(index, sl_fail(SL_EEXIST, "row %zu: id %llu is already in the index; choose another",
                                                i, (unsigned long long)id));
        if (id >= next) next = id + 1;
    }
    index->graph.next_id = next;
    return SL_OK;
}

void sl_ids_undo(sl_index *index, uint64_t next_id) {
    index->graph.next_id = next_id;
    restore_ids(index);
}

void sl_ids_forget(sl_index *index) {
    map_free(index);
}

void sl_ids_adopt(sl_index *index, uint64_t *ids) {
    map_free(index);
    replace_ids(index, ids, sizeof *ids);
}
