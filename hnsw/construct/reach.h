/* Finds the nodes that links of layer 0 reach from the entry point, and links the others. */
#ifndef SL_HNSW_CONSTRUCT_REACH_H
#define SL_HNSW_CONSTRUCT_REACH_H

#include "hnsw/construct/insert.h"

typedef struct sl_reach {
    const sl_graph *graph;
    size_t capacity;   /* nodes that there is room for */
    uint64_t *reached; /* a bit a node */
    uint32_t *queue;
    size_t head, tail;
    uint64_t *tree; /* a bit a link of layer 0: it reached its target first; NULL: no tree */
} sl_reach;

sl_status sl_reach_init(sl_reach *reach, const sl_graph *graph, size_t capacity, int with_tree);
void sl_reach_free(sl_reach *reach);
/* Bytes that sl_reach_init allocates. */
size_t sl_reach_bytes(const sl_graph *graph, size_t capacity, int with_tree);

/* Goes breadth first from the entry point, over links in range. Returns the number of nodes reached. */
size_t sl_reach_from_entry(sl_reach *reach);

static inline int sl_reach_has(const sl_reach *reach, uint32_t node) {
    return reach->reached[node / 64] >> (node % 64) & 1;
}

/* Gives every unreached node a link from a reached one near it, until all are reached. Returns the number of new links.
 * `reach` has a tree; `insert` is a thread's scratch. Threads: no other call on the index meanwhile. */
size_t sl_reach_repair(sl_reach *reach, sl_insert *insert);

/* Links the open ends that a thread's inserts left (detours.h), each from a node near it. Takes a walk for each end.
 * Returns 0 if an end stays open; the whole proof is then owed. `insert`: a thread's scratch. Threads: no other call on
 * the index meanwhile. */
int sl_reach_close(sl_insert *insert, sl_detours *detours);

/*
 * Proves that every node is reachable, and repairs the graph if one isn't. Does so if the proof is owed
 * (sl_index.unverified), else returns at once. A handle that follows a file also returns at once, since the writer
 * proves. Searches may go on meanwhile.
 *
 * Errors: SL_ENOMEM; SL_EBUSY in a child that fork() made of a writer in persistent memory. After an error the proof is
 * still owed.
 */
sl_status sl_reach_settle(sl_index *index);

#endif
