/* Which nodes a walk over layer 0 can come to from the entry point, and bringing in those it cannot. */
#ifndef SL_HNSW_BUILD_REACH_H
#define SL_HNSW_BUILD_REACH_H

#include "hnsw/build/insert.h"

typedef struct sl_reach {
    const sl_index *index;
    size_t capacity;   /* nodes there is room for */
    uint64_t *reached; /* a bit a node */
    uint32_t *queue;
    size_t head, tail;
    uint64_t *tree; /* a bit a link of layer 0: the one by which its target was reached first; NULL where not asked */
} sl_reach;

sl_status sl_reach_init(sl_reach *reach, const sl_index *index, size_t capacity, int with_tree);
void sl_reach_free(sl_reach *reach);

/* Breadth-first from the entry point, over links in range. Returns how many nodes were reached. */
size_t sl_reach_run(sl_reach *reach);

static inline int sl_reach_has(const sl_reach *reach, uint32_t node) {
    return reach->reached[node / 64] >> (node % 64) & 1;
}

/* Gives every unreached node a link from a reached one near it, until all are reached; returns how many it took.
 * `reach` has a tree; `insert` is a thread's scratch. Needs the index for itself. */
size_t sl_reach_repair(sl_reach *reach, sl_insert *insert);

/* Proves the nodes added since the last proof reachable, repairing where they are not; returns at once where there are
 * none, and for a handle that follows a file: proving is its writer's. Searches may go on beside it. Errors: SL_ENOMEM,
 * and SL_EBUSY in a child that fork() made of a writer in persistent memory, after which the proof is still owed. */
sl_status sl_reach_settle(sl_index *index);

#endif
