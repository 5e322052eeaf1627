#include "hnsw/graph/ids.h"

#include "base/id_hash.h"
#include "base/probe.h"
#include "hnsw/graph/arrays.h"
#include "hnsw/graph/view.h"

#include <stdlib.h>
#include <string.h>

/* Map entries and ids are prefetched this many ids ahead, so that memory serves several look-ups at once. */
enum { AHEAD_PLACE = 32, AHEAD_ID = 16 };
enum { LEAST_ENTRIES = 64 };

static size_t map_place(const sl_id_map *map, uint64_t id) {
    return (size_t)sl_id_hash(map->seed, id) & (map->size - 1);
}

/* The id under which the map has a node. */
static uint64_t map_id(const sl_graph *graph, const sl_id_map *map, uint32_t node) {
    return map->ids ? map->ids[node] : sl_id_of(graph, node);
}

static void prefetch_place(const sl_id_map *map, uint64_t id) {
    sl_prefetch(&map->entries[map_place(map, id)], sizeof *map->entries);
}

/* Prefetches the id that a look-up compares first. The entry is in the cache already. */
static void prefetch_id(const sl_graph *graph, const sl_id_map *map, uint64_t id) {
    const uint32_t node = map->entries[map_place(map, id)];
    if (node == SL_NONE) return;
    if (map->ids)
        sl_prefetch(&map->ids[node], sizeof *map->ids);
    else
        sl_id_prefetch(graph, node);
}

/* The entry of an id, or the empty entry where it belongs. */
static size_t map_at(const sl_graph *graph, const sl_id_map *map, uint64_t id) {
    SL_PROBE(at, sl_id_hash(map->seed, id), map->size) {
        if (map->entries[at] == SL_NONE || map_id(graph, map, map->entries[at]) == id) return at;
    }
}

/* Returns whether a node has its id for good: it isn't deleted, or it's being added by this handle. */
static int has_id(const sl_graph *graph, const sl_id_map *map, uint32_t node) {
    return !sl_is_deleted(graph, node) ||
           (!map->follows && graph->lives.nodes && graph->lives.nodes[node].born == SL_UNBORN);
}

/* The first node of a chain that has the id, isn't deleted in the graph, and lies below n. */
static uint32_t first_undeleted(const sl_graph *graph, const sl_id_map *map, uint32_t node, uint64_t id, size_t n) {
    const int all = n == SIZE_MAX; /* for a writer, nodes count that are being added */
    while (node != SL_NONE && (node >= n || !(all ? has_id(graph, map, node) : !sl_is_deleted(graph, node)) ||
                               map_id(graph, map, node) != id))
        node = map->next ? map->next[node] : SL_NONE;
    return node;
}

/* Gives an id to a node, if no undeleted node has it. Returns the node that has it, or SL_NONE.
 * If ids may have several vectors, the node goes to the front of the chain, and deleted nodes there drop out. */
static uint32_t map_put(const sl_graph *graph, sl_id_map *map, uint64_t id, uint32_t node) {
    if (map->ids) map->ids[node] = id;
    uint32_t *entry = &map->entries[map_at(graph, map, id)];
    if (map->next) {
        map->next[node] = first_undeleted(graph, map, *entry, id, SIZE_MAX);
        *entry = node;
        return SL_NONE;
    }
    if (*entry != SL_NONE && has_id(graph, map, *entry)) return *entry;
    *entry = node;
    return SL_NONE;
}

/* Takes a node's entry out, and closes the gap (Knuth, The Art of Computer Programming 3, 6.4, algorithm R). */
static void remove_entry(const sl_graph *graph, sl_id_map *map, size_t at) {
    const size_t mask = map->size - 1;
    for (size_t from = (at + 1) & mask; map->entries[from] != SL_NONE; from = (from + 1) & mask) {
        const size_t home = map_place(map, map_id(graph, map, map->entries[from]));
        /* The entry may move back to the gap if its home doesn't lie between the gap and the entry. */
        if (((from - home) & mask) < ((from - at) & mask)) continue;
        map->entries[at] = map->entries[from];
        at = from;
    }
    map->entries[at] = SL_NONE;
}

/* Takes a node out of the map. */
static void map_remove(const sl_graph *graph, sl_id_map *map, uint32_t node) {
    const size_t at = map_at(graph, map, map_id(graph, map, node));
    uint32_t *link = &map->entries[at];
    while (*link != SL_NONE && *link != node) {
        if (!map->next) return;
        link = &map->next[*link];
    }
    if (*link == SL_NONE) return;
    *link = map->next ? map->next[node] : SL_NONE;
    if (map->entries[at] == SL_NONE) remove_entry(graph, map, at);
}

/* With several vectors an id, the chains lie behind the entries. The ids of a map that follows a file come last. */
static size_t map_bytes(const sl_graph *graph, size_t size, int follows) {
    return (size + (graph->multi ? size / 2 : 0)) * sizeof(uint32_t) + (follows ? size / 2 * sizeof(uint64_t) : 0);
}

size_t sl_ids_bytes(const sl_graph *graph, size_t n) {
    return n * sizeof(uint64_t) + (graph->multi ? 0 : map_bytes(graph, sl_probe_places(n, LEAST_ENTRIES), 0));
}

/* Puts a map in the place of the present one, which is freed. No look-up may hold the present one. */
static void map_swap(sl_index *index, const sl_id_map *map) {
    const sl_id_map old = index->id_map;
    index->id_map = *map;
    sl_mem_free(&index->graph.allocator, old.entries, map_bytes(&index->graph, old.size, old.ids != NULL));
}

static void map_free(sl_index *index) {
    sl_publishing_lock(index);
    map_swap(index, &(sl_id_map){0});
    sl_publishing_unlock(index);
}

/* Makes a map of the undeleted nodes among the first n, with room for `room`. Only a damaged file has an id twice: its
 * first node keeps the id, and `*twice` counts the others. */
static sl_status map_fill(const sl_graph *graph, sl_id_map *map, size_t n, size_t room, size_t *twice) {
    void *entries;
    const int follows = map->follows;
    map->size = sl_probe_places(room, LEAST_ENTRIES);
    map->seed = sl_id_seed();
    SL_TRY(sl_mem_alloc(&graph->allocator, map_bytes(graph, map->size, follows), &entries));
    map->entries = entries;
    map->next = graph->multi ? map->entries + map->size : NULL;
    map->ids = NULL;
    memset(entries, 0xff, map->size * sizeof(uint32_t));
    if (follows) {
        map->ids = (uint64_t *)(void *)(map->entries + map->size + (map->next ? map->size / 2 : 0));
        memset(map->ids, 0xff, map->size / 2 * sizeof *map->ids);
    }
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
    sl_mem_free(&graph->allocator, map.entries, map_bytes(graph, map.size, 0));
    return SL_OK;
}

/* Makes the map of the first n nodes. The caller holds the lock, or has the index for a change. */
static sl_status map_make(const sl_graph *graph, size_t n, size_t room, int follows, sl_id_map *out) {
    size_t twice = 0;
    *out = (sl_id_map){.nodes = n, .follows = follows};
    return map_fill(graph, out, n, room, &twice);
}

/* An undeleted node of the id, or SL_NONE. The map may name nodes that the graph doesn't count yet. */
static uint32_t find_node(const sl_index *index, const sl_graph *graph, uint64_t id) {
    const sl_id_map *map = &index->id_map;
    uint32_t node = id < graph->n ? (uint32_t)id : SL_NONE;
    if (sl_has(&index->graph, SL_ARRAY_IDS)) node = map->entries[map_at(&index->graph, map, id)];
    if (map->next) return first_undeleted(graph, map, node, id, graph->n);
    return node < graph->n && !sl_is_deleted(graph, node) ? node : SL_NONE;
}

uint32_t sl_id_next(const sl_index *index, uint32_t node) {
    const sl_id_map *map = &index->id_map;
    if (!map->next) return SL_NONE;
    return first_undeleted(&index->graph, map, map->next[node], sl_id_of(&index->graph, node), SIZE_MAX);
}

static void find_nodes(const sl_index *index, const sl_graph *graph, const uint64_t *ids, size_t n, uint32_t *nodes) {
    const sl_id_map *map = &index->id_map;
    for (size_t i = 0; i < n; i++) {
        if (map->entries && i + AHEAD_PLACE < n) prefetch_place(map, ids[i + AHEAD_PLACE]);
        if (map->entries && i + AHEAD_ID < n) prefetch_id(&index->graph, map, ids[i + AHEAD_ID]);
        nodes[i] = find_node(index, graph, ids[i]);
    }
}

/* Takes the nodes out of the map that were added in used places since the map's commit, or puts them in under their new
 * ids. */
static void map_change_places(const sl_graph *view, sl_id_map *map, int puts) {
    for (size_t word = 0; word * 64 < map->nodes; word++) {
        uint64_t added = sl_newer_word(view, word, map->as_of) & ~sl_deleted_word(view, word);
        for (; added; added &= added - 1) {
            const uint32_t node = (uint32_t)(word * 64 + (size_t)__builtin_ctzll(added));
            if (node >= map->nodes) break;
            if (puts)
                (void)map_put(view, map, sl_id_of(view, node), node);
            else
                map_remove(view, map, node);
        }
    }
}

/* An old id of one node may be the new id of another, so all old ones go first. */
static void map_follow_places(const sl_graph *view, sl_id_map *map) {
    if (map->as_of >= view->as_of) return;
    map_change_places(view, map, 0);
    map_change_places(view, map, 1);
}

/* Adds to the map what the process that writes the file has published since. `view`: the newest. */
static sl_status map_follow(sl_index *index, const sl_graph *view) {
    sl_id_map *map = &index->id_map, made;
    const size_t n = view->n;
    if (!map->entries || map->size < sl_probe_places(n, LEAST_ENTRIES)) {
        SL_TRY(map_make(view, n, n + n / 2, 1, &made));
        map_swap(index, &made);
    } else {
        map_follow_places(view, map);
    }
    for (; map->nodes < n; map->nodes++)
        (void)map_put(view, map, sl_id_of(view, (uint32_t)map->nodes), (uint32_t)map->nodes);
    if (map->as_of < view->as_of) map->as_of = view->as_of;
    return SL_OK;
}

/* Makes the map, if the index keeps ids and has no map. Under a handle that follows a file, brings the map up to the
 * graph that a reading under this lock has. The caller holds the lock. */
static sl_status map_ensure(sl_index *index, const sl_graph *graph) {
    sl_id_map made;
    /* A version may be older than the ids. */
    if (!sl_has(&index->graph, SL_ARRAY_IDS)) return SL_OK;
    if (index->published && graph != &index->graph) return map_follow(index, graph);
    if (index->published) {
        sl_graph view = index->graph;
        view.as_of = index->commit;
        sl_view_follow(index, &view);
        return map_follow(index, &view);
    }
    if (index->id_map.entries) return SL_OK;
    SL_TRY(map_make(&index->graph, index->graph.n, index->graph.n, 0, &made));
    map_swap(index, &made);
    return SL_OK;
}

sl_status sl_ids_lookup(sl_index *index, const sl_graph *graph, const uint64_t *ids, size_t n, uint32_t *nodes) {
    sl_status status = SL_OK;
    for (size_t done = 0, some; done < n && status == SL_OK; done += some) {
        some = n - done < SL_IDS_AT_ONCE ? n - done : SL_IDS_AT_ONCE;
        sl_publishing_lock(index);
        status = map_ensure(index, graph);
        if (status == SL_OK) find_nodes(index, graph, ids + done, some, nodes + done);
        sl_publishing_unlock(index);
    }
    return status;
}

sl_status sl_id_lookup(sl_index *index, const sl_graph *graph, uint64_t id, uint32_t *node) {
    return sl_ids_lookup(index, graph, &id, 1, node);
}

sl_status sl_id_find(sl_index *index, const sl_graph *graph, uint64_t id, uint32_t *node) {
    SL_TRY(sl_id_lookup(index, graph, id, node));
    return *node != SL_NONE ? SL_OK : sl_id_missing(id);
}

sl_status sl_ids_read(sl_index *index, sl_reading *reading, const uint64_t *ids, size_t n, uint32_t *nodes) {
    sl_publishing_lock(index);
    const sl_graph *graph = sl_reading_begin(index, reading);
    sl_status status = map_ensure(index, graph);
    if (status == SL_OK) find_nodes(index, graph, ids, n, nodes);
    sl_publishing_unlock(index);
    return status;
}

sl_status sl_id_read(sl_index *index, sl_reading *reading, uint64_t id, uint32_t *node) {
    SL_TRY(sl_ids_read(index, reading, &id, 1, node));
    return *node != SL_NONE ? SL_OK : sl_id_missing(id);
}

sl_status sl_id_missing(uint64_t id) {
    return sl_fail(SL_ENOTFOUND, "id %llu is not in the index; give ids that were added and not deleted",
                   (unsigned long long)id);
}

void sl_node_list_free(sl_node_list *list, const sl_allocator *allocator) {
    SL_FREE_ARRAY(allocator, list->nodes, list->room);
}

sl_status sl_node_list_add(const sl_index *index, uint32_t node, sl_node_list *list) {
    sl_status status = SL_OK;
    list->nodes =
        sl_mem_grow(&index->graph.allocator, list->nodes, &list->room, list->count + 1, sizeof *list->nodes, &status);
    if (status == SL_OK) list->nodes[list->count++] = node;
    return status;
}

static sl_status list_nodes(sl_index *index, const sl_graph *graph, uint64_t id, sl_node_list *list) {
    const sl_id_map *map = &index->id_map;
    SL_TRY(map_ensure(index, graph));
    for (uint32_t node = find_node(index, graph, id); node != SL_NONE;) {
        SL_TRY(sl_node_list_add(index, node, list));
        node = map->next ? first_undeleted(graph, map, map->next[node], id, graph->n) : SL_NONE;
    }
    return SL_OK;
}

sl_status sl_id_nodes(sl_index *index, const sl_graph *graph, uint64_t id, sl_node_list *list) {
    sl_publishing_lock(index);
    sl_status status = list_nodes(index, graph, id, list);
    sl_publishing_unlock(index);
    return status;
}

static int by_id(const void *a, const void *b) {
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

uint64_t *sl_ids_sorted(const sl_allocator *allocator, const uint64_t *ids, size_t n, sl_status *status) {
    uint64_t *sorted = sl_mem_array(allocator, n ? n : 1, sizeof *sorted, status);
    if (*status != SL_OK) return NULL;
    memcpy(sorted, ids, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_id);
    return sorted;
}

/* Names the rows of an id that stands twice. */
static sl_status refuse_twice(const uint64_t *ids, uint64_t id) {
    size_t first = 0, second;
    while (ids[first] != id)
        first++;
    for (second = first + 1; ids[second] != id;)
        second++;
    return sl_fail(SL_EEXIST, "row %zu: id %llu is also that of row %zu; ids must differ", second,
                   (unsigned long long)id, first);
}

sl_status sl_ids_nodes(sl_index *index, const uint64_t *ids, size_t n, sl_node_list *list) {
    const sl_graph *graph = &index->graph;
    sl_status status = SL_OK;
    if (n == 1) return sl_id_nodes(index, graph, *ids, list);
    uint64_t *sorted = sl_ids_sorted(&graph->allocator, ids, n, &status);
    for (size_t i = 0; i < n && status == SL_OK; i++)
        if (i == 0 || sorted[i] != sorted[i - 1])
            status = sl_id_nodes(index, graph, sorted[i], list);
        else if (!graph->multi)
            status = refuse_twice(ids, sorted[i]);
    SL_FREE_ARRAY(&graph->allocator, sorted, n ? n : 1);
    return status;
}

sl_status sl_id_read_nodes(sl_index *index, sl_reading *reading, uint64_t id, sl_node_list *list) {
    sl_publishing_lock(index);
    sl_status status = list_nodes(index, sl_reading_begin(index, reading), id, list);
    sl_publishing_unlock(index);
    return status;
}

sl_status sl_index_contains(sl_index *index, uint64_t id, int *found) {
    uint32_t node;
    sl_reading reading;
    if (!index || !found) return sl_fail(SL_EINVAL, "index or found is NULL");
    sl_status status = sl_ids_read(index, &reading, &id, 1, &node);
    sl_reading_end(&reading);
    if (status == SL_OK) *found = node != SL_NONE;
    return status;
}

sl_status sl_index_ids(const sl_index *index, uint64_t *ids, size_t room, size_t *count) {
    if (!index || !count || (room && !ids)) return sl_fail(SL_EINVAL, "index, ids or count is NULL");
    sl_reading reading;
    const sl_graph *graph = sl_reading_begin(index, &reading);
    sl_id_map map = {0};
    size_t found = 0, twice = 0;
    sl_status status = sl_ids_repeat(graph) ? map_fill(graph, &map, graph->n, graph->n, &twice) : SL_OK;
    for (size_t node = 0; status == SL_OK && (node = sl_next_undeleted(graph, node)) < graph->n; node++) {
        const uint64_t id = sl_id_of(graph, (uint32_t)node);
        if (map.entries && map.entries[map_at(graph, &map, id)] != node) continue;
        if (found < room) ids[found] = id;
        found++;
    }
    sl_mem_free(&graph->allocator, map.entries, map_bytes(graph, map.size, 0));
    sl_reading_end(&reading);
    if (status == SL_OK) *count = found;
    return status;
}

int sl_ids_are_numbers(const sl_graph *graph, const uint64_t *ids, size_t n) {
    if (sl_has(graph, SL_ARRAY_IDS)) return 0;
    if (!ids) return graph->next_id == graph->n;
    for (size_t i = 0; i < n; i++)
        if (ids[i] != graph->n + i) return 0;
    return 1;
}

/* Replaces the array of ids. Readers may still have the old one. The caller holds the lock. */
static void swap_ids(sl_index *index, void *ids, size_t width) {
    sl_version_release(index, &index->layer0, index->graph.arrays[SL_ARRAY_IDS].at,
                       sl_array_bytes(&index->graph, SL_ARRAY_IDS, index->graph.capacity));
    sl_array_put(&index->graph, SL_ARRAY_IDS, ids, width);
}

static void replace_ids(sl_index *index, void *ids, size_t width) {
    sl_publishing_lock(index);
    swap_ids(index, ids, width);
    sl_publishing_unlock(index);
}

/* Replaces implicit or 32-bit ids by an array of 64-bit ids. */
static sl_status make_ids_explicit(sl_index *index) {
    void *block;
    if (index->graph.arrays[SL_ARRAY_IDS].width == sizeof(uint64_t)) return SL_OK;
    SL_TRY(sl_mem_alloc(&index->layer0, index->graph.capacity * sizeof(uint64_t), &block));
    uint64_t *whole = block;
    for (size_t node = 0; node < index->graph.n; node++)
        whole[node] = sl_node_set_has(&index->free, node) ? 0 : sl_id_of(&index->graph, (uint32_t)node);
    replace_ids(index, whole, sizeof *whole);
    return SL_OK;
}

/* Frees the array of ids if every id is its node's number. */
static void make_ids_implicit(sl_index *index) {
    const sl_graph *graph = &index->graph;
    size_t node = 0;
    if (index->writer || !sl_has(graph, SL_ARRAY_IDS) || graph->next_id != graph->n) return;
    while (node < graph->n && sl_id_of(graph, (uint32_t)node) == node)
        node++;
    if (node < graph->n) return;
    map_free(index);
    replace_ids(index, NULL, 0);
}

/* Makes sure that the map has room for `total` nodes. */
static sl_status map_reserve(sl_index *index, size_t total) {
    const sl_graph *graph = &index->graph;
    sl_id_map made;
    if (index->id_map.entries && index->id_map.size >= sl_probe_places(total, LEAST_ENTRIES)) return SL_OK;
    /* A file may have room for a thousand times its nodes. */
    const size_t room = graph->capacity < 2 * total ? graph->capacity : 2 * total;
    SL_TRY(map_make(graph, graph->n, total > room ? total : room, 0, &made));
    sl_publishing_lock(index);
    map_swap(index, &made);
    sl_publishing_unlock(index);
    return SL_OK;
}

/* The node of row i. */
static uint32_t node_of(const sl_graph *graph, const sl_new_ids *rows, size_t i) {
    return rows->places ? rows->places[i] : (uint32_t)(graph->n + i);
}

/* Refuses the id of a row that another node has, which may be that of an earlier row. */
static sl_status refuse_id(const sl_graph *graph, const sl_new_ids *rows, size_t row, uint32_t other) {
    const uint64_t id = rows->ids[row];
    for (size_t i = 0; i < row; i++)
        if (node_of(graph, rows, i) == other)
            return sl_fail(SL_EEXIST, "row %zu: id %llu is also that of row %zu; ids must differ", row,
                           (unsigned long long)id, i);
    return sl_fail(SL_EEXIST, "row %zu: id %llu is already in the index; choose another, or ask for a replacement", row,
                   (unsigned long long)id);
}

/* Takes the ids of the first `count` rows out of the map. */
static void unput_ids(sl_index *index, const sl_new_ids *rows, size_t count) {
    if (!index->id_map.entries) return;
    for (size_t i = count; i-- > 0;)
        map_remove(&index->graph, &index->id_map, node_of(&index->graph, rows, i));
}

/* Writes the ids of some rows, and puts them into the map if there is one. The caller holds the lock. */
static sl_status put_ids(sl_index *index, const sl_new_ids *rows, sl_range some, uint64_t *next, int map) {
    const sl_graph *graph = &index->graph;
    for (size_t i = some.first; i < some.end; i++) {
        const uint64_t id = rows->ids ? rows->ids[i] : graph->next_id + i;
        const uint32_t node = node_of(graph, rows, i);
        sl_status status = SL_OK;
        uint32_t other = SL_NONE;
        if (id == SL_NO_ID) status = sl_fail(SL_EINVAL, "row %zu: id 2^64 - 1 is reserved; choose another", i);
        if (status == SL_OK) sl_id_store(graph, node, id);
        if (map && status == SL_OK) other = map_put(graph, &index->id_map, id, node);
        if (other != SL_NONE && !rows->replace) status = refuse_id(graph, rows, i, other);
        if (status != SL_OK) {
            if (map) unput_ids(index, rows, i);
            return status;
        }
        if (id >= *next) *next = id + 1;
    }
    return SL_OK;
}

sl_status sl_ids_append(sl_index *index, const sl_new_ids *rows) {
    sl_graph *graph = &index->graph;
    const size_t n = rows->n;
    if (!rows->ids && graph->next_id > UINT64_MAX - n)
        return sl_fail(SL_ELIMIT, "no ids are left after %llu; give ids", (unsigned long long)graph->next_id - 1);
    if (!rows->places && sl_ids_are_numbers(graph, rows->ids, n)) {
        graph->next_id = graph->n + n;
        return SL_OK;
    }
    SL_TRY(make_ids_explicit(index));
    /* Ids above the largest differ from all others, so no map is needed. Nor are ids looked up that may have several
     * vectors. */
    const int map = index->id_map.entries || (rows->ids && !graph->multi);
    uint64_t next = graph->next_id;
    sl_status status = map ? map_reserve(index, graph->n + n) : SL_OK;
    for (size_t first = 0, end; first < n && status == SL_OK; first = end) {
        end = n - first < SL_IDS_AT_ONCE ? n : first + SL_IDS_AT_ONCE;
        sl_publishing_lock(index);
        status = put_ids(index, rows, (sl_range){first, end}, &next, map);
        sl_publishing_unlock(index);
    }
    if (status == SL_OK)
        graph->next_id = next;
    else
        make_ids_implicit(index);
    return status;
}

void sl_id_put(sl_index *index, uint32_t node) {
    if (index->id_map.entries && !index->graph.multi)
        (void)map_put(&index->graph, &index->id_map, sl_id_of(&index->graph, node), node);
}

void sl_id_remove(sl_index *index, uint32_t node) {
    if (index->id_map.entries) map_remove(&index->graph, &index->id_map, node);
}

void sl_ids_undo(sl_index *index, const sl_new_ids *rows, uint64_t next_id) {
    sl_publishing_lock(index);
    if (sl_has(&index->graph, SL_ARRAY_IDS)) unput_ids(index, rows, rows->n);
    sl_publishing_unlock(index);
    index->graph.next_id = next_id;
    make_ids_implicit(index);
}

void sl_ids_forget(sl_index *index) {
    map_free(index);
}

void sl_ids_forget_now(sl_index *index) {
    map_swap(index, &(sl_id_map){0});
}

void sl_ids_adopt(sl_index *index, uint64_t *ids) {
    map_swap(index, &(sl_id_map){0});
    swap_ids(index, ids, sizeof *ids);
}
