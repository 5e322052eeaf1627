#include "hnsw/construct/insert.h"

#include "hnsw/graph/entry.h"
#include "hnsw/graph/links.h"
#include "hnsw/graph/upper.h"

sl_status sl_insert_init(sl_insert *insert, sl_index *index, sl_build_locks *locks) {
    *insert = (sl_insert){.index = index, .locks = locks};
    size_t most =
        index->graph.ef_construction > index->graph.m0 + 1 ? index->graph.ef_construction : index->graph.m0 + 1;
    sl_status status = sl_walk_init(&insert->walk, &index->graph, index->graph.ef_construction);
    if (status == SL_OK) status = sl_selection_init(&insert->selection, &index->graph, most);
    if (status == SL_OK) status = sl_detours_init(&insert->detours, &index->graph);
    insert->own = sl_mem_array(&index->graph.allocator, index->graph.m0, sizeof *insert->own, &status);
    if (status != SL_OK) sl_insert_free(insert);
    return status;
}

sl_status sl_insert_bytes(sl_index *index, size_t *bytes) {
    sl_counted counted = {.from = index->graph.allocator};
    sl_insert insert;
    index->graph.allocator = sl_counted_allocator(&counted);
    sl_status status = sl_insert_init(&insert, index, NULL);
    *bytes = counted.bytes;
    if (status == SL_OK) sl_insert_free(&insert);
    index->graph.allocator = counted.from;
    return status;
}

void sl_insert_free(sl_insert *insert) {
    if (!insert->index) return;
    sl_walk_free(&insert->walk);
    sl_selection_free(&insert->selection);
    sl_detours_free(&insert->detours);
    SL_FREE_ARRAY(&insert->index->graph.allocator, insert->own, insert->index->graph.m0);
    insert->index = NULL;
}

static uint32_t node_of(const sl_layer *layer, uint32_t id) {
    return layer->level ? layer->graph->upper.nodes[id] : id;
}

/* Makes a node a candidate of the selection for another node's list, if lists may get links to it. */
static void add_candidate(sl_insert *insert, const sl_layer *layer, uint32_t node, uint32_t self) {
    sl_selection *selection = &insert->selection;
    if (node != self && node < layer->graph->n && !sl_node_set_has(&insert->index->leaving, node))
        selection->candidates[selection->candidate_count++] = node;
}

static void candidates_from_pool(sl_insert *insert, const sl_layer *layer, uint32_t self) {
    const sl_pool *pool = &insert->walk.pool;
    insert->selection.candidate_count = 0;
    for (size_t i = 0; i < pool->size; i++)
        add_candidate(insert, layer, node_of(layer, sl_pool_id(pool->keys[i])), self);
}

/* Makes candidates of the nodes that a look ahead found. Leaves free places out. A place that is used again has another
 * vector, which is a candidate like any other. Returns whether at least half of the nodes are candidates. */
static int candidates_from_found(sl_insert *insert, const sl_layer *layer, uint32_t self) {
    insert->selection.candidate_count = 0;
    for (size_t i = 0; i < insert->found_count; i++)
        if (!sl_node_set_has(&insert->index->free, insert->found[i]))
            add_candidate(insert, layer, insert->found[i], self);
    return insert->selection.candidate_count && 2 * insert->selection.candidate_count >= insert->found_count;
}

/* Returns the id of a node on a layer that has the node. Slots are in node order, so a binary search finds the slot. */
static uint32_t id_on(const sl_layer *layer, uint32_t node) {
    return layer->level ? sl_slot_of(layer->graph, node) : node;
}

static void write_selection(const sl_insert *insert, const sl_layer *layer, uint32_t *links) {
    const sl_selection *selection = &insert->selection;
    if (!links) return;
    for (size_t i = 0; i < layer->degree; i++)
        sl_link_store(links + i, i < selection->selected_count ? id_on(layer, selection->selected[i]) : SL_NONE);
    sl_index_touch(insert->index, links, layer->degree * sizeof *links);
}

static int is_selected(const sl_selection *selection, uint32_t node) {
    for (size_t i = 0; i < selection->selected_count; i++)
        if (selection->selected[i] == node) return 1;
    return 0;
}

/* Lists the links of layer 0 that the new selection of a list drops. `node`: the new candidate, which wasn't in the
 * list before. */
static void note_dropped(sl_insert *insert, uint32_t node) {
    const sl_selection *selection = &insert->selection;
    sl_detours *detours = &insert->detours;
    detours->dropped_count = 0;
    for (size_t i = 0; i < selection->candidate_count; i++)
        if (selection->candidates[i] != node && !is_selected(selection, selection->candidates[i]))
            detours->dropped[detours->dropped_count++] = selection->candidates[i];
}

/* Puts a link into a free place of a list, unless the list has the link. Returns 0 if there is no place. */
static int append_link(const sl_insert *insert, const sl_layer *layer, uint32_t *links, uint32_t id) {
    size_t at = 0;
    while (at < layer->degree && sl_link_load(links + at) != SL_NONE && sl_link_load(links + at) != id)
        at++;
    if (at == layer->degree) return 0;
    sl_link_store(links + at, id);
    sl_index_touch(insert->index, links + at, sizeof *links);
    return 1;
}

/* Puts back each dropped link whose end no other path reaches. If the list has no place left, the end becomes an open
 * end. In persistent memory a fence after each link keeps gaps out of the list. */
static void restore_unreached(sl_insert *insert, const sl_layer *layer, uint32_t node, uint32_t *links) {
    sl_detours *detours = &insert->detours;
    sl_detours_check(detours, node);
    for (size_t i = 0; i < detours->dropped_count; i++) {
        if (!append_link(insert, layer, links, detours->dropped[i]))
            sl_detours_open(detours, node, detours->dropped[i]);
        sl_index_fence(insert->index);
    }
}

/* Selects a full list again, among its links and a new one to `id`. Leaves out ids outside the layer, since nobody has
 * checked a file that's written in place. Returns whether `id` was selected. */
static int select_anew(sl_insert *insert, const sl_layer *layer, uint32_t node, uint32_t *links, uint32_t id) {
    sl_selection *selection = &insert->selection;
    const int watches = insert->detours.watches && layer->level == 0;
    selection->candidate_count = 0;
    for (size_t i = 0; i < layer->degree; i++) {
        uint32_t old = sl_link_load(links + i);
        if (old < layer->count && node_of(layer, old) < layer->graph->n &&
            !sl_node_set_has(&insert->index->leaving, node_of(layer, old)))
            selection->candidates[selection->candidate_count++] = node_of(layer, old);
    }
    selection->candidates[selection->candidate_count++] = node_of(layer, id);
    sl_select_neighbours(selection, node, layer->degree);
    if (watches) note_dropped(insert, id);
    if (!sl_index_is_direct(insert->index)) {
        write_selection(insert, layer, links);
    } else {
        for (size_t i = 0; i < selection->selected_count; i++)
            selection->candidates[i] = id_on(layer, selection->selected[i]);
        sl_links_replace(insert->index, links, layer->degree, selection->candidates, selection->selected_count);
    }
    if (watches) restore_unreached(insert, layer, node, links);
    return is_selected(selection, node_of(layer, id));
}

static sl_spin *lock_of(const sl_insert *insert, uint32_t node) {
    return &insert->locks->nodes[node % SL_LOCK_STRIPES];
}

int sl_insert_reverse_link(sl_insert *insert, const sl_layer *layer, uint32_t to, uint32_t id) {
    uint32_t node = node_of(layer, to);
    uint32_t *links = sl_layer_links(layer, to);
    if (!links) return 0;
    sl_spin *lock = lock_of(insert, node);
    sl_spin_lock(lock);
    const int has = append_link(insert, layer, links, id) || select_anew(insert, layer, node, links, id);
    sl_spin_unlock(lock);
    return has;
}

/* Selects a node's own list among the candidates, and writes it. A node that's linked anew is already in the graph, so
 * other threads may write reverse links into its list meanwhile. */
static void write_own_list(sl_insert *insert, const sl_layer *layer, uint32_t node, uint32_t *links) {
    sl_spin *lock = lock_of(insert, node);
    sl_select_neighbours(&insert->selection, node, insert->index->graph.m);
    sl_spin_lock(lock);
    write_selection(insert, layer, links);
    sl_spin_unlock(lock);
}

/* Walks over each level from the top down, starting at the best node of the level above. The candidates that a walk
 * finds become the node's list on that level. */
static void write_own_links(sl_insert *insert, uint32_t node, uint32_t slot, uint32_t top, sl_entry entry) {
    sl_index *index = insert->index;
    sl_walk *walk = &insert->walk;
    sl_walk_set_query_node(walk, &index->graph, node);
    uint32_t start = sl_walk_descend(walk, entry, top);
    for (uint32_t level = top;; level--) {
        sl_layer layer = sl_layer_at(&index->graph, level);
        sl_walk_layer(walk, level, sl_range_of_id(start), index->graph.ef_construction);
        sl_pool_finish(&walk->pool, index->graph.ef_construction);
        sl_pool_sort(&walk->pool);
        candidates_from_pool(insert, &layer, node);
        write_own_list(insert, &layer, node, sl_layer_links(&layer, level ? slot : node));
        if (level == 0) break;
        start = walk->pool.size ? sl_pool_id(walk->pool.keys[0]) : start;
        if (level == 1) start = index->graph.upper.nodes[start];
    }
}

/* Links an old node to a new one that has no link from an old node yet. Takes a free place in the list of an old node
 * among the new node's `count` links. If there is none, the new node becomes an open end. */
static void link_from_old(sl_insert *insert, uint32_t node, size_t count) {
    const sl_layer layer = sl_layer_at(&insert->index->graph, 0);
    for (size_t i = 0; i < count; i++) {
        const uint32_t to = insert->own[i];
        if (sl_detours_is_new(&insert->detours, to)) continue;
        sl_spin *lock = lock_of(insert, to);
        sl_spin_lock(lock);
        const int has = append_link(insert, &layer, sl_links(layer.graph, to), node);
        sl_spin_unlock(lock);
        if (has) return;
    }
    sl_detours_open(&insert->detours, SL_NONE, node);
}

/* Writes reverse links, from layer 0 up. A layer's list is copied before its first reverse link is written. From then
 * on other threads find the node there, and may change its list. */
static void write_reverse_links(sl_insert *insert, uint32_t node, uint32_t slot, uint32_t top) {
    for (uint32_t level = 0; level <= top; level++) {
        sl_layer layer = sl_layer_at(&insert->index->graph, level);
        uint32_t self = level ? slot : node;
        const uint32_t *links = sl_layer_links(&layer, self);
        size_t count = links ? sl_links_known(&layer, links, insert->own) : 0;
        int from_old = 0;
        for (size_t i = 0; i < count; i++)
            from_old |= sl_insert_reverse_link(insert, &layer, insert->own[i], self) &&
                        (level || !sl_detours_is_new(&insert->detours, insert->own[i]));
        if (level == 0 && insert->detours.watches && !from_old) link_from_old(insert, node, count);
    }
}

void sl_insert_node(sl_insert *insert, uint32_t node) {
    sl_index *index = insert->index;
    uint32_t slot, level = sl_level_and_slot(&index->graph, node, &slot);
    sl_entry entry = sl_entry_get(&index->graph);
    uint32_t top = level < entry.level ? level : entry.level;
    const sl_layer layer = sl_layer_at(&index->graph, 0);
    if (!level && candidates_from_found(insert, &layer, node)) {
        write_own_list(insert, &layer, node, sl_links(&index->graph, node));
    } else {
        write_own_links(insert, node, slot, top, entry);
    }
    sl_index_fence(index);
    write_reverse_links(insert, node, slot, top);
    if (level <= entry.level) return;
    sl_spin_lock(&insert->locks->entry);
    if (level > sl_entry_get(&index->graph).level) sl_entry_set(index, level, slot);
    sl_spin_unlock(&insert->locks->entry);
}
