/* Imitates a machine of several memory nodes: the table that an index with a NUMA policy calls. It does nothing but
 * record the calls and derive where pages would lie. Safe for several threads. */
#ifndef SL_TESTS_TOPOLOGY_H
#define SL_TESTS_TOPOLOGY_H

#include "base/numa.h"
#include "base/thread.h"

#include <sys/types.h>

enum { TOPOLOGY_RANGES = 256, TOPOLOGY_PAGES = 4096, TOPOLOGY_THREADS = 64, TOPOLOGY_PINS = 256, TOPOLOGY_CPUS = 4 };

/* Memory with a policy. */
typedef struct topology_range {
    uintptr_t at;
    size_t size;
    sl_numa_policy policy;
    size_t node; /* of BIND; under LOCAL the node of the calling thread */
    int touched; /* its first byte differed from what the allocator had left there */
} topology_range;

typedef struct topology {
    sl_numa_ops ops;              /* what to pass to the library */
    size_t nodes;                 /* each has TOPOLOGY_CPUS CPUs: node n has those from n * TOPOLOGY_CPUS on */
    size_t bare;                  /* a node without memory; SIZE_MAX: none */
    int policy_error, move_error; /* errno with which these calls fail; 0: they succeed */
    size_t stuck;                 /* every n-th page to move stays; 0: none */
    uint8_t left;                 /* what the allocator leaves in its blocks */

    sl_spin lock;
    size_t calls; /* of any entry */
    topology_range ranges[TOPOLOGY_RANGES];
    size_t range_count, policies; /* policies: ranges ever made */
    struct {
        uintptr_t at;
        int node;
    } moved[TOPOLOGY_PAGES];
    size_t moved_count, move_requests;
    struct {
        pid_t thread;
        sl_cpu_set cpus;
    } threads[TOPOLOGY_THREADS];
    size_t thread_count;
    struct {
        pid_t thread;
        size_t first, count; /* its CPUs */
    } pins[TOPOLOGY_PINS];
    size_t pin_count;
} topology;

void topology_init(topology *machine, size_t nodes);

/* Lets the calling thread run on the CPUs of nodes [first, first + count) alone, and puts it on the first. */
void topology_stand_on(topology *machine, size_t first, size_t count);

/* Returns the range that the address lies in, or NULL. */
const topology_range *topology_find(const topology *machine, const void *at);

#endif
