/* Finds the nodes that links of layer 0 reach from the entry point, and links the others. */
#ifndef SL_HNSW_CONSTRUCT_REACH_H
#define SL_HNSW_CONSTRUCT_REACH_H

#include "hnsw/construct/insert.h"

typedef struct sl_reach {
    const sl_graph *graph;
    size_t capacity;   /* nodes that there is room for */
    uint64_t *reached; /* one bit per node */
    uint32_t *queue;
    size_t head, tail;
    uint64_t *tree; /* one bit per link of layer 0: this link was the first to reach its target; NULL: not recorded */
} sl_reach;

sl_status sl_reach_init(sl_reach *reach, const sl_graph *graph, size_t capacity, int with_tree);
void sl_reach_free(sl_reach *reach);
/* Bytes that sl_reach_init allocates. */
size_t sl_reach_bytes(const sl_graph *graph, size_t capacity, int with_tree);

/* Goes breadth first from the entry point. Leaves out links to numbers that are no nodes, as in a damaged file. Returns
 * the number of nodes reached. */
size_t sl_reach_from_entry(sl_reach *reach);

static inline int sl_reach_has(const sl_reach *reach, uint32_t node) {
    return reach->reached[node / 64] >> (node % 64) & 1;
}

/* Returns whether a node has left the graph, or is leaving it. Then no path needs to lead to it. */
int sl_stays_out(const sl_index *index, size_t node);

/* Gives every unreached node a link from a reached node near it, until all nodes are reached. Returns the number of new
 * links. `reach` must have a tree. `insert`: one thread's scratch. Threads: no other call on the index meanwhile. */
size_t sl_reach_repair(sl_reach *reach, sl_insert *insert);

/* Appends a link to `to` to the list of `from`, if that has room. Returns whether the list has the link. */
int sl_reach_append(const sl_index *index, uint32_t from, uint32_t to);

/* Links the open ends that one thread's inserts left (detours.h), each from a node near it. Each end takes a walk.
 * Returns 0 if an end stays open; the whole graph must then be proved (sl_reach_settle). `insert`: one thread's
 * scratch. Threads: no other call on the index meanwhile. */
int sl_reach_close(sl_insert *insert, sl_detours *detours);

/*
 * Proves that every node is reachable, and repairs the graph if one isn't. Returns at once if no proof is pending
 * (sl_index.unverified is 0), or if the handle follows a file: then the writer does it. Searches may go on meanwhile.
 *
 * Errors: SL_ENOMEM; SL_EBUSY in a child that fork() made of a writer in persistent memory. After an error the proof
 * stays pending.
 */
sl_status sl_reach_settle(sl_index *index);
/* The same, also if lists were swept (sl_index.swept). */
sl_status sl_reach_settle_swept(sl_index *index);

#endif
