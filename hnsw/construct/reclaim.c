#include "hnsw/construct/reclaim.h"

#include "hnsw/construct/reach.h"
#include "hnsw/construct/reach_steps.h"
#include "hnsw/graph/arrays.h"
#include "hnsw/graph/entry.h"
#include "hnsw/graph/free_nodes.h"
#include "hnsw/graph/ids.h"
#include "hnsw/graph/links.h"
#include "hnsw/graph/lives.h"
#include "hnsw/graph/tombstones.h"

#include <string.h>

/* Nodes leave once more than one in SHARE is deleted, and LEAST. */
enum { SHARE = 64, LEAST = 16 };
/* Each changed node pays for so many times its share of the lists, and for a least number. */
enum { PACE = 6, LEAST_LISTS = 512 };
/* Candidates that are tried for the place of a dropped link. */
enum { TRIED = 32, ADDED = 4 };
/* Nodes that are looked for in one step, each by a walk. */
enum { WALKS = 4 };
/* Leaving nodes that are followed from one list, unless the list itself has more. */
enum { WAYS = 64 };
/* Nodes that are freed while the lock is held once. */
enum { AT_ONCE = 64 };

typedef enum sl_reclaim_phase { LOOK, KEEP, SWEEP, SWEEP_UPPER, PROVE, LINK, WAIT, FREE } sl_reclaim_phase;

struct sl_reclaim {
    sl_index *index;
    sl_reclaim_phase phase;
    size_t at;       /* the next node, slot, or place in `nodes` */
    uint32_t *nodes; /* the leaving nodes */
    size_t count;
    uint64_t numbering; /* of the nodes' numbers */
    uint64_t epoch;     /* in which no list of the graph named a leaving node any more */
    uint64_t commit;    /* the same for a file: the first commit that has these lists; 0 in memory */
    sl_build_locks *locks;
    size_t kept;          /* of KEEP: the next node */
    sl_insert insert;     /* scratch */
    sl_reach_steps steps; /* of LOOK and PROVE */
};

/* ---------------------------------------------------------------------------------------------------------------
 * Choosing
 * ------------------------------------------------------------------------------------------------------------- */

static size_t deleted_in_graph(const sl_index *index) {
    return index->graph.deleted_count - index->free.count;
}

static void reclaim_free(sl_reclaim *reclaim) {
    sl_index *index = reclaim->index;
    const sl_allocator *allocator = &index->graph.allocator;
    sl_insert_free(&reclaim->insert);
    sl_reach_steps_free(&reclaim->steps, index);
    SL_FREE(allocator, reclaim->locks);
    SL_FREE_ARRAY(allocator, reclaim->nodes, reclaim->count);
    SL_FREE(allocator, reclaim);
}

/* A node that can be the entry point in place of one that leaves: one on the highest level there is. Deleted nodes come
 * last. SL_NONE: there is none. */
static uint32_t other_entry(const sl_graph *graph, uint32_t *level, uint32_t *slot) {
    uint32_t best = SL_NONE;
    *level = 0;
    for (size_t s = 0; s < graph->upper.count; s++) {
        const uint32_t levels = graph->upper.start[s + 1] - graph->upper.start[s], node = graph->upper.nodes[s];
        if (levels <= *level || levels > SL_MAX_LEVEL || node >= graph->n || sl_is_deleted(graph, node)) continue;
        best = node;
        *level = levels;
        *slot = (uint32_t)s;
    }
    if (best != SL_NONE) return best;
    const size_t node = sl_next_undeleted(graph, 0);
    return node < graph->n ? (uint32_t)node : SL_NONE;
}

/* Makes another node the entry point, if the present one is deleted. */
static void move_entry(sl_index *index) {
    uint32_t level, slot = 0;
    const uint32_t entry = sl_entry_get(&index->graph).node;
    if (entry < index->graph.n && !sl_is_deleted(&index->graph, entry)) return;
    const uint32_t node = other_entry(&index->graph, &level, &slot);
    if (node != SL_NONE) sl_entry_set(index, level, level ? slot : node);
}

/* No reader that goes by an earlier epoch is left; in other processes, none that goes by an earlier commit. */
typedef struct horizon {
    uint64_t epoch, commit;
} horizon;

static horizon horizon_of(const sl_index *index) {
    return (horizon){sl_epochs_oldest(&index->versions->epochs),
                     index->writer ? sl_readers_oldest(index->store, index->commit) : 0};
}

/* Returns whether all searches have ended that began before this epoch or commit. */
static int have_left(const sl_index *index, uint64_t epoch, uint64_t commit) {
    const horizon now = horizon_of(index);
    return now.epoch >= epoch && now.commit >= commit;
}

/* The commit that deleted a node. A damaged file may name one that is to come. */
static uint64_t died_in_file(const sl_index *index, size_t node) {
    const uint64_t died = index->file_lives.nodes[node].died;
    return died <= index->commit + (index->writer->dirty.marked != 0) ? died : 0;
}

/* Finds the next deleted node from `from` on that is in the graph and that no reader may find any more; until then
 * lists must lead to it. The entry point has to stay. */
static size_t next_ready(const sl_index *index, const horizon *horizon, size_t from) {
    const sl_graph *graph = &index->graph;
    const uint32_t entry = sl_entry_get(graph).node;
    for (; from < graph->n; from++) {
        const uint64_t rest = sl_deleted_word(graph, from / 64) >> (from % 64);
        from = rest ? from + (size_t)__builtin_ctzll(rest) : (from / 64 + 1) * 64 - 1;
        if (!rest || from >= graph->n || from == entry || sl_node_set_has(&index->free, from)) continue;
        if (graph->lives.nodes[from].died > horizon->epoch) continue;
        if (!index->writer || died_in_file(index, from) <= horizon->commit) break;
    }
    return from < graph->n ? from : graph->n;
}

static size_t count_ready(const sl_index *index, const horizon *horizon) {
    size_t count = 0;
    for (size_t node = 0; (node = next_ready(index, horizon, node)) < index->graph.n; node++)
        count++;
    return count;
}

static void list_leaving(sl_reclaim *reclaim, const horizon *horizon) {
    sl_index *index = reclaim->index;
    size_t node = 0;
    for (size_t i = 0; i < reclaim->count; i++, node++) {
        node = next_ready(index, horizon, node);
        reclaim->nodes[i] = (uint32_t)node;
        sl_node_set_add(&index->leaving, node);
    }
}

static sl_status reclaim_alloc(sl_index *index, size_t count, sl_reclaim **out) {
    const sl_allocator *allocator = &index->graph.allocator;
    sl_status status = SL_OK;
    SL_TRY(sl_node_set_reserve(index, &index->free));
    SL_TRY(sl_node_set_reserve(index, &index->leaving));
    sl_reclaim *reclaim = sl_mem_array(allocator, 1, sizeof *reclaim, &status);
    SL_TRY(status);
    reclaim->index = index;
    reclaim->numbering = index->graph.numbering;
    reclaim->count = count;
    reclaim->nodes = sl_mem_array(allocator, count, sizeof *reclaim->nodes, &status);
    reclaim->locks = sl_mem_array(allocator, 1, sizeof *reclaim->locks, &status);
    if (status == SL_OK) status = sl_insert_init(&reclaim->insert, index, reclaim->locks);
    if (status != SL_OK)
        reclaim_free(reclaim);
    else
        *out = reclaim;
    return status;
}

/* Begins if at least `least` nodes can leave; index->reclaim tells. */
static sl_status reclaim_begin(sl_index *index, size_t least) {
    SL_TRY(sl_lives_reserve(index));
    move_entry(index);
    const horizon horizon = horizon_of(index);
    const size_t count = count_ready(index, &horizon);
    sl_reclaim *reclaim = NULL;
    if (count < least) return SL_OK;
    SL_TRY(reclaim_alloc(index, count, &reclaim));
    list_leaving(reclaim, &horizon);
    index->reclaim = reclaim;
    index->swept = 1;
    return SL_OK;
}

/* Begins if it is worth the work. Looks again only once readers have moved on. */
static void begin_if_due(sl_index *index) {
    const size_t n = index->graph.n - index->free.count, least = n / SHARE < LEAST ? LEAST : n / SHARE + 1;
    const uint64_t moved = index->writer ? index->commit + 1 : sl_epochs_oldest(&index->versions->epochs);
    if (deleted_in_graph(index) < least || index->reclaim_looked == moved) return;
    index->reclaim_looked = moved;
    (void)reclaim_begin(index, least);
}

void sl_reclaim_stop(sl_index *index) {
    if (index->reclaim) reclaim_free(index->reclaim);
    index->reclaim = NULL;
    sl_node_set_free(index, &index->leaving);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Sweeping
 * ------------------------------------------------------------------------------------------------------------- */

static int is_leaving(const sl_reclaim *reclaim, uint32_t node) {
    return sl_node_set_has(&reclaim->index->leaving, node);
}

static int is_among(const uint32_t *ids, size_t count, uint32_t id) {
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id) return 1;
    return 0;
}

/* A list without its links to leaving nodes. */
typedef struct swept_list {
    uint32_t keep[2 * SL_MAX_M], gone[2 * SL_MAX_M];
    size_t kept, left;
} swept_list;

static void split_list(const sl_reclaim *reclaim, const sl_layer *layer, const uint32_t *links, swept_list *out) {
    const sl_upper *upper = layer->upper;
    out->kept = out->left = 0;
    for (size_t i = 0; i < layer->degree; i++) {
        const uint32_t id = sl_link_load(links + i);
        if (id == SL_NONE) break;
        if (id >= layer->count) continue; /* of a damaged file */
        const uint32_t node = layer->level ? upper->nodes[id] : id;
        if (is_leaving(reclaim, node))
            out->gone[out->left++] = id;
        else
            out->keep[out->kept++] = id;
    }
}

/* Makes the undeleted neighbours of a leaving node the candidates for a list, but those that the list has. */
static void list_candidates(sl_reclaim *reclaim, uint32_t node, uint32_t leaving, const swept_list *list) {
    const sl_graph *graph = &reclaim->index->graph;
    sl_selection *selection = &reclaim->insert.selection;
    const uint32_t *links = sl_links(graph, leaving);
    selection->candidate_count = 0;
    for (size_t i = 0; i < graph->m0; i++) {
        const uint32_t id = sl_link_load(links + i);
        if (id == SL_NONE) break;
        if (id != node && id < graph->n && !sl_is_deleted(graph, id) && !is_among(list->keep, list->kept, id))
            selection->candidates[selection->candidate_count++] = id;
    }
}

/* Moves the candidate that is nearest to the base, among those from place `from` on, to that place. */
static void move_nearest(sl_selection *selection, size_t from) {
    size_t best = from;
    for (size_t i = from + 1; i < selection->candidate_count; i++)
        if (selection->scores[i] > selection->scores[best]) best = i;
    const uint32_t node = selection->candidates[best];
    const float score = selection->scores[best];
    selection->candidates[best] = selection->candidates[from];
    selection->scores[best] = selection->scores[from];
    selection->candidates[from] = node;
    selection->scores[from] = score;
}

/* Returns whether a candidate is nearer to a node of the list than to the list's own node, by angle under IP. */
static int is_covered(sl_reclaim *reclaim, uint32_t node, uint32_t candidate, const swept_list *list) {
    const sl_graph *graph = &reclaim->index->graph;
    sl_similarity *similarity = &reclaim->insert.selection.similarity;
    float scores[2 * SL_MAX_M], own;
    sl_similarity_set(similarity, candidate);
    sl_similarity_many(similarity, &node, 1, &own);
    sl_similarity_many(similarity, list->keep, list->kept, scores);
    own *= sl_similarity_unit(graph, node);
    for (size_t i = 0; i < list->kept; i++)
        if (scores[i] * sl_similarity_unit(graph, list->keep[i]) > own) return 1;
    return 0;
}

/* Nodes that are leaving, over which paths lead on from a list. */
typedef struct ways_out {
    uint32_t nodes[2 * SL_MAX_M];
    size_t count;
} ways_out;

/* Adds to a node's list, as far as it has room, what one of the nodes leads to and no path without leaving nodes does.
 * Adds leaving nodes that it leads to, too. */
static void take_missing(sl_reclaim *reclaim, uint32_t node, uint32_t leaving, ways_out *ways, swept_list *list) {
    const sl_graph *graph = &reclaim->index->graph;
    sl_reach_steps *steps = &reclaim->steps;
    const uint32_t *links = sl_links(graph, leaving);
    const int reached = node >= steps->n || !sl_node_set_has(&steps->missing, node);
    for (size_t i = 0; i < graph->m0 && list->kept < graph->m0; i++) {
        const uint32_t id = sl_link_load(links + i);
        if (id == SL_NONE) break;
        if (id >= steps->n) continue;
        if (is_leaving(reclaim, id)) {
            if (ways->count < WAYS && !is_among(ways->nodes, ways->count, id)) ways->nodes[ways->count++] = id;
        } else if (id != node && sl_node_set_has(&steps->missing, id)) {
            if (!is_among(list->keep, list->kept, id)) list->keep[list->kept++] = id;
            if (reached) sl_node_set_remove(&steps->missing, id);
        }
    }
}

/* Adds to a node's list what only leaving nodes lead to, so that searches find it meanwhile. */
static void take_all_missing(sl_reclaim *reclaim, uint32_t node, swept_list *list) {
    ways_out ways = {.count = list->left};
    if (!reclaim->steps.missing.count) return;
    memcpy(ways.nodes, list->gone, list->left * sizeof *ways.nodes);
    for (size_t i = 0; i < ways.count; i++)
        take_missing(reclaim, node, ways.nodes[i], &ways, list);
}

/* Adds to a node's list what takes the place of a link to a leaving node: the nearest of that node's neighbours that no
 * other link covers, at most ADDED of them, or else the nearest. */
static void replace_link(sl_reclaim *reclaim, uint32_t node, uint32_t leaving, swept_list *list, size_t degree) {
    sl_selection *selection = &reclaim->insert.selection;
    list_candidates(reclaim, node, leaving, list);
    if (!selection->candidate_count) return;
    sl_similarity_set(&selection->similarity, node);
    sl_similarity_many(&selection->similarity, selection->candidates, selection->candidate_count, selection->scores);
    size_t added = 0;
    for (size_t i = 0; i < selection->candidate_count && i < TRIED && added < ADDED && list->kept < degree; i++) {
        move_nearest(selection, i);
        if (is_covered(reclaim, node, selection->candidates[i], list)) continue;
        list->keep[list->kept++] = selection->candidates[i];
        added++;
    }
    if (!added && list->kept < degree) list->keep[list->kept++] = selection->candidates[0];
}

static void sweep_list(sl_reclaim *reclaim, uint32_t node) {
    sl_index *index = reclaim->index;
    const sl_layer layer = sl_layer_at(&index->graph, 0);
    uint32_t *links = sl_links(&index->graph, node);
    swept_list list;
    split_list(reclaim, &layer, links, &list);
    if (!list.left) return;
    take_all_missing(reclaim, node, &list);
    for (size_t i = 0; i < list.left; i++)
        replace_link(reclaim, node, list.gone[i], &list, layer.degree);
    sl_links_replace(index, links, layer.degree, list.keep, list.kept);
}

/* Upper layers only speed a descent up, and later inserts fill their lists again. */
static void sweep_slot(sl_reclaim *reclaim, size_t slot) {
    sl_index *index = reclaim->index;
    for (uint32_t level = 1; level <= SL_MAX_LEVEL; level++) {
        const sl_layer layer = sl_layer_at(&index->graph, level);
        uint32_t *links = sl_layer_links(&layer, (uint32_t)slot);
        swept_list list;
        if (!links) break;
        split_list(reclaim, &layer, links, &list);
        if (list.left) sl_links_store(index, links, layer.degree, list.keep, list.kept);
    }
}

/* ---------------------------------------------------------------------------------------------------------------
 * Proving
 * ------------------------------------------------------------------------------------------------------------- */

/* Links to a node from a near one that links reach without a leaving node. Its list must have room. */
static void keep_reached(sl_reclaim *reclaim, uint32_t node) {
    const sl_graph *graph = &reclaim->index->graph;
    sl_reach_steps *steps = &reclaim->steps;
    sl_walk *walk = &reclaim->insert.walk;
    sl_walk_set_query_node(walk, graph, node);
    sl_walk_layer(walk, 0, sl_range_of_id(sl_walk_descend(walk, sl_entry_get(graph), 0)), graph->ef_construction);
    sl_pool_finish(&walk->pool, graph->ef_construction);
    sl_pool_sort(&walk->pool);
    for (size_t i = 0; i < walk->pool.size; i++) {
        const uint32_t near = sl_pool_id(walk->pool.keys[i]);
        if (near >= steps->n || sl_node_set_has(&steps->missing, near) || is_leaving(reclaim, near)) continue;
        if (!sl_reach_append(reclaim->index, near, node)) continue;
        sl_reach_steps_add(steps, node);
        return;
    }
}

/* Links the next node to which all paths lead over leaving nodes, so that searches meanwhile find it. Returns 0 if
 * there is none. */
static int keep_missing(sl_reclaim *reclaim) {
    sl_index *index = reclaim->index;
    sl_node_set *missing = &reclaim->steps.missing;
    const size_t n = reclaim->steps.n;
    while ((reclaim->kept = sl_node_set_next(missing, (sl_range){reclaim->kept, n})) < n &&
           sl_stays_out(index, reclaim->kept))
        sl_node_set_remove(missing, reclaim->kept);
    if (reclaim->kept >= n) return 0;
    if (sl_visited_cover(&reclaim->insert.walk.visited, &index->graph.allocator, index->graph.n) != SL_OK) return 0;
    keep_reached(reclaim, (uint32_t)reclaim->kept++);
    return 1;
}

/* Looks for a path to the next nodes that were not reached, and links each to which there is none. If a node stays
 * without a link, the whole graph is proved at once. Returns whether more nodes may come. */
static int link_missing(sl_reclaim *reclaim) {
    sl_index *index = reclaim->index;
    sl_insert *insert = &reclaim->insert;
    const size_t n = reclaim->steps.n;
    const uint32_t entry = sl_entry_get(&index->graph).node;
    for (int walks = 0; walks < WALKS; reclaim->at++) {
        reclaim->at = sl_node_set_next(&reclaim->steps.missing, (sl_range){reclaim->at, n});
        if (reclaim->at >= n) break;
        if (sl_stays_out(index, reclaim->at)) continue;
        sl_detours_open(&insert->detours, entry, (uint32_t)reclaim->at);
        walks++;
    }
    if (!insert->detours.open_count) return reclaim->at < n;
    const int covers = sl_visited_cover(&insert->walk.visited, &index->graph.allocator, index->graph.n) == SL_OK;
    if (!covers || !sl_reach_close(insert, &insert->detours)) index->unverified++;
    insert->detours.open_count = 0;
    return reclaim->at < n;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Freeing
 * ------------------------------------------------------------------------------------------------------------- */

static void free_node(sl_index *index, uint32_t node) {
    const uint64_t died = index->graph.lives.nodes[node].died;
    if (died > index->freed_until) index->freed_until = died;
    sl_id_remove(index, node);
    sl_life_unborn(index, node, sl_epochs_now(&index->versions->epochs) + 1);
    sl_node_wipe(index, node);
    sl_node_set_add(&index->free, node);
    sl_node_set_remove(&index->leaving, node); /* an add may take the place before all are free */
}

static void free_some(sl_reclaim *reclaim) {
    sl_index *index = reclaim->index;
    const size_t end = reclaim->at + AT_ONCE < reclaim->count ? reclaim->at + AT_ONCE : reclaim->count;
    sl_publishing_lock(index);
    for (; reclaim->at < end; reclaim->at++)
        if (reclaim->nodes[reclaim->at] != SL_NONE) free_node(index, reclaim->nodes[reclaim->at]);
    index->graph.free_count = index->free.count;
    if (reclaim->at == reclaim->count) sl_version_publish(index);
    sl_publishing_unlock(index);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Steps
 * ------------------------------------------------------------------------------------------------------------- */

static void next_phase(sl_reclaim *reclaim, sl_reclaim_phase phase) {
    reclaim->phase = phase;
    reclaim->at = 0;
}

/* From the epoch on that begins here, no search meets a leaving node, unless it began before. Returns 0 for want of
 * memory. */
static int begin_waiting(sl_reclaim *reclaim) {
    sl_index *index = reclaim->index;
    if (index->unverified && sl_reach_settle(index) != SL_OK) return 0;
    if (sl_version_reserve(index, 1) != SL_OK) return 0;
    index->swept = 0;
    sl_version_publish_now(index);
    reclaim->epoch = sl_epochs_now(&index->versions->epochs);
    if (index->writer) reclaim->commit = index->commit + (index->writer->dirty.marked != 0);
    next_phase(reclaim, WAIT);
    return 1;
}

/* Does up to `lists` lists' work. Returns 0 if it has to wait for searches, or for memory. */
static int go_on(sl_reclaim *reclaim, size_t lists) {
    sl_index *index = reclaim->index;
    sl_reach_steps *steps = &reclaim->steps;
    switch (reclaim->phase) {
    case LOOK:
        if (!steps->n && sl_reach_steps_begin(steps, index, &index->leaving) != SL_OK) return 0;
        if (sl_reach_steps_go(steps, &index->graph, &lists)) next_phase(reclaim, KEEP);
        return 1;
    case KEEP:
        next_phase(reclaim, keep_missing(reclaim) ? LOOK : SWEEP);
        return 1;
    case SWEEP:
        for (; lists && reclaim->at < index->graph.n; reclaim->at++, lists--)
            if (!is_leaving(reclaim, (uint32_t)reclaim->at)) sweep_list(reclaim, (uint32_t)reclaim->at);
        if (reclaim->at < index->graph.n) return 1;
        sl_reach_steps_free(steps, index);
        next_phase(reclaim, SWEEP_UPPER);
        return 1;
    case SWEEP_UPPER:
        for (; lists && reclaim->at < index->graph.upper.count; reclaim->at++, lists--)
            sweep_slot(reclaim, reclaim->at);
        if (reclaim->at >= index->graph.upper.count) next_phase(reclaim, PROVE);
        return 1;
    case PROVE:
        if (!steps->n && sl_reach_steps_begin(steps, index, NULL) != SL_OK) return 0;
        if (sl_reach_steps_go(steps, &index->graph, &lists)) next_phase(reclaim, LINK);
        return 1;
    case LINK:
        return link_missing(reclaim) || begin_waiting(reclaim);
    case WAIT:
        if (!have_left(index, reclaim->epoch, reclaim->commit)) return 0;
        next_phase(reclaim, FREE);
        return 1;
    case FREE:
        /* A save may read the places. Another change may have taken the version that was reserved. */
        if (sl_version_places_stay(index) || sl_version_reserve(index, 1) != SL_OK) return 0;
        free_some(reclaim);
        if (reclaim->at >= reclaim->count) sl_reclaim_stop(index);
        return 1;
    }
    return 0;
}

/* Returns whether there is work that can go on. */
static int may_go_on(sl_index *index) {
    const int serves = index->writer ? index->file_lives.nodes != NULL : index->graph.place == SL_PLACE_DRAM;
    if (index->keeps_deleted || !serves || index->graph.ranks || sl_free_nodes_load(index) != SL_OK) return 0;
    if (index->reclaim && index->reclaim->numbering != index->graph.numbering) sl_reclaim_stop(index);
    return 1;
}

void sl_reclaim_step(sl_index *index, size_t changed) {
    changed += index->reclaim_owed;
    index->reclaim_owed = 0;
    if (!changed || !may_go_on(index)) return;
    if (!index->reclaim) begin_if_due(index);
    if (!index->reclaim) return;
    const size_t share = PACE * (index->graph.n / (index->reclaim->count + 1) + 1);
    for (size_t lists = changed * (share < LEAST_LISTS ? LEAST_LISTS : share), some; lists && index->reclaim;
         lists -= some) {
        some = lists < AT_ONCE ? lists : AT_ONCE;
        if (!go_on(index->reclaim, some)) return;
    }
}

void sl_reclaim_prove(sl_index *index, size_t lists) {
    if (!may_go_on(index)) return;
    for (; lists && index->reclaim && index->reclaim->phase < WAIT; lists -= lists < AT_ONCE ? lists : AT_ONCE)
        if (!go_on(index->reclaim, AT_ONCE)) return;
}

void sl_reclaim_free_swept(sl_index *index) {
    if (!may_go_on(index)) return;
    while (index->reclaim && index->reclaim->phase >= WAIT)
        if (!go_on(index->reclaim, AT_ONCE)) return;
}

size_t sl_reclaim_left(const sl_index *index, uint64_t until) {
    const horizon then = {until, UINT64_MAX};
    return count_ready(index, &then);
}

sl_status sl_reclaim_some(sl_index *index, size_t lists, int *waits) {
    *waits = 0;
    SL_TRY(sl_free_nodes_load(index));
    if (!may_go_on(index) || (!index->reclaim && !sl_reclaim_left(index, UINT64_MAX))) return SL_OK;
    if (!index->reclaim) SL_TRY(reclaim_begin(index, 1));
    *waits = !index->reclaim;
    for (size_t some; lists && index->reclaim && !*waits; lists -= some) {
        some = lists < AT_ONCE ? lists : AT_ONCE;
        *waits = !go_on(index->reclaim, some);
    }
    return SL_OK;
}

int sl_reclaim_run(sl_index *index) {
    if (!may_go_on(index)) return 0;
    while (index->reclaim || deleted_in_graph(index) > 1) {
        if (!index->reclaim && reclaim_begin(index, 1) != SL_OK) return 0;
        if (!index->reclaim) return 0;
        while (index->reclaim)
            if (!go_on(index->reclaim, AT_ONCE)) return 0;
    }
    return 1;
}
