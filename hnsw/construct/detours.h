/*
 * Links that lists drop, and other paths to their ends.
 *
 * A list that's selected again drops links. The end of a dropped link stays reachable if another path leads there from
 * the list's node. The path's links were read after the link was dropped. A link of the path may be dropped later: it
 * then has a path of its own, read later still. At the end of an add, each dropped link has a path of links that exist.
 * That holds even if several threads drop links at the same time. All nodes that were reachable stay reachable.
 *
 * A new node needs a link from an old node. Nodes for which neither was found are open ends, and sl_reach_close links
 * them.
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
    int watches;       /* 1: lists of layer 0 keep links without a detour; 0: a whole proof follows (reach.h) */
    uint32_t first;    /* nodes below it were in the index before this add */
    uint32_t *near;    /* hash table of nodes one or two links away from a list's node */
    uint32_t *own;     /* a copy of that node's list */
    uint32_t *dropped; /* ends of the links that the list dropped, best first; m0 entries */
    size_t dropped_count;
    sl_open_end *open; /* see sl_reach_close */
    size_t open_count;
    int too_many; /* `open` was full */
} sl_detours;

sl_status sl_detours_init(sl_detours *detours, const sl_graph *graph);
void sl_detours_free(sl_detours *detours);

/* Watches the lists from here on. `first`: the number of nodes before the add. */
void sl_detours_watch(sl_detours *detours, size_t first);

/* Notes that `to` must be reached from `from`. */
void sl_detours_open(sl_detours *detours, uint32_t from, uint32_t to);

/* Removes from `dropped` the ends that another short path reaches. `dropped` holds the ends of links that a node's list
 * dropped; the list no longer has them. Threads: the caller holds the lock of the list's node. */
void sl_detours_check(sl_detours *detours, uint32_t node);

#endif
