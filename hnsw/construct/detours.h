/*
 * Links that lists drop, and other paths to their ends.
 *
 * A full list that's selected again drops links. The end of a dropped link must stay reachable by another path from the
 * list's node. That path is read after the drop. If one of its links is dropped later, a further path replaces that
 * link. So at the end of an add, each dropped link has a path of links that exist, even if several threads drop links
 * at the same time. All nodes that were reachable stay reachable.
 *
 * A new node also needs a link from an old node. If such a link, or the path above, isn't found, the node is an open
 * end. sl_reach_close links it.
 */
#ifndef SL_HNSW_CONSTRUCT_DETOURS_H
#define SL_HNSW_CONSTRUCT_DETOURS_H

#include "hnsw/graph/index.h"

/* A node that must be reached: from node `from`, or with SL_NONE from the entry point. */
typedef struct sl_open_end {
    uint32_t from, to;
} sl_open_end;

/* One thread's scratch. */
typedef struct sl_detours {
    const sl_graph *graph;
    int watches; /* 1: a list of layer 0 takes a dropped link back if its end has no other path; 0: not checked, since
                    the whole graph is proved later (reach.h) */
    uint32_t first;    /* nodes with smaller numbers were in the index before this add */
    uint32_t *near;    /* hash table of the nodes that are one or two links away from the node of the list */
    uint32_t *own;     /* a copy of that list */
    uint32_t *dropped; /* ends of the links that the list dropped, best first; m0 entries */
    size_t dropped_count;
    sl_open_end *open; /* see sl_reach_close */
    size_t open_count;
    int too_many; /* 1: `open` was full when another open end came */
} sl_detours;

sl_status sl_detours_init(sl_detours *detours, const sl_graph *graph);
void sl_detours_free(sl_detours *detours);

/* Sets `watches`: from here on, lists are checked. `first`: the number of nodes before the add. */
void sl_detours_watch(sl_detours *detours, size_t first);

/* Returns whether a node belongs to this add: it lies behind the others, or has a place that was free. */
static inline int sl_detours_is_new(const sl_detours *detours, uint32_t node) {
    const sl_lives *lives = &detours->graph->lives;
    return node >= detours->first || (lives->nodes && lives->nodes[node].born == SL_UNBORN);
}

/* Adds an open end: sl_reach_close must make `to` reachable from `from`. */
void sl_detours_open(sl_detours *detours, uint32_t from, uint32_t to);

/* Removes from `dropped` the ends that another short path reaches. `dropped` holds the ends of links that a node's list
 * dropped; the list no longer has them. Threads: the caller holds the lock of the list's node. */
void sl_detours_check(sl_detours *detours, uint32_t node);

#endif
