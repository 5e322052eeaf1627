/* Finding the nodes that a walk over layer 0 can reach from the entry point, and linking those that it cannot. */
#ifndef SL_HNSW_BUILD_REACH_H
#define SL_HNSW_BUILD_REACH_H

#include "hnsw/build/insert.h"

typedef struct sl_reach {
    const sl_graph *graph;
    size_t capacity;   /* nodes there is room for */
    uint64_t *reached; /* a bit a node */
    uint32_t *queue;
    size_t head, tail;
    uint64_t
        *tree; /* a bit a link of layer 0, set where its target was reached first by it; NULL where not asked for */
} sl_reach;

sl_status sl_reach_init(sl_reach *reach, const sl_graph *graph, size_t capacity, int with_tree);
void sl_reach_free(sl_reach *reach);
/* Bytes that sl_reach_init allocates. */
size_t sl_reach_bytes(const sl_graph *graph, size_t capacity, int with_tree);

/* Goes breadth first from the entry point, over links in range. Returns how many nodes were reached. */
size_t sl_reach_from_entry(sl_reach *reach);

static inline int sl_reach_has(const sl_reach *reach, uint32_t node) {
    return reach->reached[node / 64] >> (node % 64) & 1;
}

/* Gives every unreached node a link from a reached one near it, until all are reached. Returns how many links that
 * took. `reach` has a tree; `insert` is a thread's scratch. Threads: no other call on the index meanwhile. */
size_t sl_reach_repair(sl_reach *reach, sl_insert *insert);

/* Links the open ends that a thread's inserts left (detours.h), each to a node near it from which it must be reached.
 * Takes a walk for each. Returns 0 where an end stays open: the whole proof is then owed.
 * Parameters: `insert` is a thread's scratch. Threads: no other call on the index meanwhile. */
int sl_reach_close(sl_insert *insert, sl_detours *detours);

/* Proves that every node can be reached, and repairs where it cannot, if the proof is owed (sl_index.unverified). It
 * returns at once where it is not, and for a handle that follows a file, whose writer proves. Searches may go on beside
 * it.
 * Errors: SL_ENOMEM; SL_EBUSY in a child that fork() made of a writer in persistent memory. After an error the proof
 * is still owed. */
sl_status sl_reach_settle(sl_index *index);

#endif
