/* Memory nodes of the machine, and the nodes that pages and threads are on. All calls to the system go through one
 * table, sl_numa_ops, so that a test can imitate a machine of several nodes. */
#ifndef SL_BASE_NUMA_H
#define SL_BASE_NUMA_H

#include "base/memory.h"

/* A policy that the machine supports. */
typedef struct sl_numa {
    sl_numa_ops ops; /* no entry is NULL */
    sl_numa_policy policy;
    size_t node;  /* the node of SL_NUMA_BIND */
    size_t nodes; /* all node numbers are below it */
    sl_allocator allocator;
    size_t size;       /* bytes of the block that holds this struct */
    sl_cpu_set cpus[]; /* of each node; empty if there is no such node */
} sl_numa;

/*
 * Opens a policy, once it works on a trial page. For SL_NUMA_DEFAULT nothing is asked, and *out is NULL.
 *
 * Errors: SL_EINVAL (no such policy or node), SL_EUNSUPPORTED (no libnuma in this build, or the system refuses),
 * SL_ELIMIT, SL_ENOMEM.
 */
sl_status sl_numa_open(sl_numa_policy policy, size_t node, const sl_numa_ops *ops, const sl_allocator *allocator,
                       sl_numa **out);
/* NULL is allowed. */
void sl_numa_close(sl_numa *numa);

/* Counts the nodes: all node numbers are below *nodes, which is at least 1. Errors: SL_EUNSUPPORTED, SL_ELIMIT. */
sl_status sl_numa_count_nodes(const sl_numa_ops *ops, size_t *nodes);

/* An allocator whose blocks have one policy, set before a block is first touched. Blocks have whole pages and come from
 * the allocator given to sl_numa_open. The struct must stay at its address while blocks exist. */
typedef struct sl_numa_memory {
    const sl_numa *numa;
    sl_numa_policy policy;
    size_t node;
} sl_numa_memory;

sl_allocator sl_numa_allocator(sl_numa_memory *memory);

/* Returns whether a copy of data for this node's threads is worth its memory: the node has CPUs and memory, and under
 * BIND it is the named node. */
int sl_numa_serves(const sl_numa *numa, size_t node);

/* The CPUs that a thread had before it was pinned for a batch. */
typedef struct sl_numa_pin {
    int pinned;
    sl_cpu_set before;
} sl_numa_pin;

/*
 * Pins the calling thread, number `thread` of `threads`, to the CPUs of one node, among the CPUs that it may run on.
 *
 * Each node gets consecutive threads. Under BIND all threads go to the named node, if it has CPUs. Nothing
 * happens if `numa` is NULL, if there is one node, or if the system refuses.
 */
void sl_numa_pin_thread(const sl_numa *numa, size_t thread, size_t threads, sl_numa_pin *pin);
void sl_numa_unpin_thread(const sl_numa *numa, const sl_numa_pin *pin);

/* Adds the bytes of a range's pages to bytes[node] (SL_MAX_NODES entries), and to *absent if a page isn't in memory. */
sl_status sl_numa_count(const sl_numa_ops *ops, const void *at, size_t size, uint64_t *bytes, uint64_t *absent);

/* Moves the pages of a range that are in memory to the nodes that the policy wants. INTERLEAVE takes turns of 2 MB,
 * counted from `origin`. Adds to *stayed the bytes that the system leaves in place, because other processes map them
 * too. */
sl_status sl_numa_move(const sl_numa *numa, const void *at, size_t size, const void *origin, uint64_t *stayed);

size_t sl_page_size(void);

#endif
