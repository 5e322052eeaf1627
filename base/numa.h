/* Memory nodes: which there are, where pages lie, and memory and threads that are put on them. What the system does is
 * asked through one table, sl_numa_ops, so that a test can be a machine of several nodes. */
#ifndef SL_BASE_NUMA_H
#define SL_BASE_NUMA_H

#include "base/memory.h"

/* What was asked for, once it is known that the machine has it. */
typedef struct sl_numa {
    sl_numa_ops ops; /* no entry is NULL */
    sl_numa_policy policy;
    size_t node;  /* of SL_NUMA_BIND */
    size_t nodes; /* their numbers are below it */
    sl_allocator allocator;
    size_t size;       /* of the block this is in */
    sl_cpu_set cpus[]; /* of each node; none where there is no such node */
} sl_numa;

/* *out is NULL for SL_NUMA_DEFAULT, of which nobody is asked anything. The policy is tried on a page of its own.
 * Errors: SL_EINVAL (no such policy or node), SL_EUNSUPPORTED (no libnuma in this build, or the system refuses),
 * SL_ELIMIT, SL_ENOMEM. */
sl_status sl_numa_open(sl_numa_policy policy, size_t node, const sl_numa_ops *ops, const sl_allocator *allocator,
                       sl_numa **out);
/* Takes NULL. */
void sl_numa_close(sl_numa *numa);

/* *given with the system's entries where it has none; the system's where given is NULL. */
sl_numa_ops sl_numa_ops_of(const sl_numa_ops *given);

/* Node numbers are below *nodes, at least 1. SL_EUNSUPPORTED, SL_ELIMIT. */
sl_status sl_numa_count_nodes(const sl_numa_ops *ops, size_t *nodes);

/* Blocks of one policy, which they have before they are first touched: whole pages, from the allocator that was given
 * to sl_numa_open. Must stay where it is as long as there are blocks. */
typedef struct sl_numa_memory {
    const sl_numa *numa;
    sl_numa_policy policy;
    size_t node;
} sl_numa_memory;

sl_allocator sl_numa_allocator(sl_numa_memory *memory);

/* Whether copies for the threads of this node are worth their memory: it has CPUs and memory, and under BIND it is the
 * node that was named. */
int sl_numa_serves(const sl_numa *numa, size_t node);

/* A thread's CPUs while it works for a batch. */
typedef struct sl_numa_pin {
    int pinned;
    sl_cpu_set before;
} sl_numa_pin;

/* Leaves the calling thread, number `thread` of `threads`, the CPUs of the node of its part alone, of those that it may
 * run on: parts go to the nodes in runs; under BIND all are the node's, as far as it has CPUs. Does nothing where numa
 * is NULL, there is one node, or the system refuses. */
void sl_numa_pin_thread(const sl_numa *numa, size_t thread, size_t threads, sl_numa_pin *pin);
void sl_numa_unpin_thread(const sl_numa *numa, const sl_numa_pin *pin);

/* Adds the pages of a range, by the node they lie on, to bytes (SL_MAX_NODES) and those not in memory to *absent. */
sl_status sl_numa_count(const sl_numa_ops *ops, const void *at, size_t size, uint64_t *bytes, uint64_t *absent);

/* Pages of a range that are in memory, to where the policy wants them: under INTERLEAVE in turns of 2 MB, counted from
 * `origin`. Adds to *stayed the bytes that the system left where they were, since other processes have them too. */
sl_status sl_numa_move(const sl_numa *numa, const void *at, size_t size, const void *origin, uint64_t *stayed);

size_t sl_page_size(void);

#endif
