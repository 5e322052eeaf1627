#define _GNU_SOURCE
#include "tests/support/topology.h"

#include <check.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Every entry begins so. */
static topology *lock_machine(void *ctx) {
    topology *machine = ctx;
    sl_spin_lock(&machine->lock);
    machine->calls++;
    return machine;
}

static void set_cpus_of(const topology *machine, size_t first, size_t count, sl_cpu_set *cpus) {
    memset(cpus, 0, sizeof *cpus);
    ck_assert_uint_le(first + count, machine->nodes);
    for (size_t cpu = first * TOPOLOGY_CPUS; cpu < (first + count) * TOPOLOGY_CPUS; cpu++)
        cpus->words[cpu / 64] |= (uint64_t)1 << (cpu % 64);
}

/* Returns the CPUs of the calling thread: all of the machine's, until a test sets others. */
static sl_cpu_set *own_cpus(topology *machine) {
    pid_t self = (pid_t)syscall(SYS_gettid);
    for (size_t i = 0; i < machine->thread_count; i++)
        if (machine->threads[i].thread == self) return &machine->threads[i].cpus;
    ck_assert_uint_lt(machine->thread_count, TOPOLOGY_THREADS);
    machine->threads[machine->thread_count].thread = self;
    set_cpus_of(machine, 0, machine->nodes, &machine->threads[machine->thread_count].cpus);
    return &machine->threads[machine->thread_count++].cpus;
}

static size_t first_cpu(const sl_cpu_set *cpus, size_t *count) {
    size_t first = SIZE_MAX;
    *count = 0;
    for (size_t cpu = SL_MAX_CPUS; cpu-- > 0;)
        if (cpus->words[cpu / 64] >> (cpu % 64) & 1) {
            first = cpu;
            ++*count;
        }
    return first;
}

static size_t nodes(void *ctx) {
    topology *machine = lock_machine(ctx);
    sl_spin_unlock(&machine->lock);
    return machine->nodes;
}

static uint64_t node_memory(void *ctx, size_t node) {
    topology *machine = lock_machine(ctx);
    sl_spin_unlock(&machine->lock);
    return node < machine->nodes && node != machine->bare ? (uint64_t)1 << 34 : 0;
}

static int node_cpus(void *ctx, size_t node, sl_cpu_set *cpus) {
    topology *machine = lock_machine(ctx);
    set_cpus_of(machine, node, 1, cpus);
    sl_spin_unlock(&machine->lock);
    return 0;
}

static size_t here(topology *machine) {
    size_t count;
    return first_cpu(own_cpus(machine), &count) / TOPOLOGY_CPUS;
}

static int node_here(void *ctx) {
    topology *machine = lock_machine(ctx);
    int node = (int)here(machine);
    sl_spin_unlock(&machine->lock);
    return node;
}

const topology_range *topology_find(const topology *machine, const void *at) {
    for (size_t i = 0; i < machine->range_count; i++)
        if ((uintptr_t)at - machine->ranges[i].at < machine->ranges[i].size) return &machine->ranges[i];
    return NULL;
}

static int set_policy(void *ctx, void *at, size_t size, sl_numa_policy policy, size_t node) {
    topology *machine = lock_machine(ctx);
    ck_assert_uint_eq((uintptr_t)at % sl_page_size(), 0);
    ck_assert_uint_eq(size % sl_page_size(), 0);
    const topology_range *known = topology_find(machine, at);
    int error = machine->policy_error;
    if (error) {
        errno = error;
    } else if (policy == SL_NUMA_DEFAULT) {
        /* A block comes back as it was given. */
        ck_assert(known && known->at == (uintptr_t)at && known->size == size);
        machine->ranges[known - machine->ranges] = machine->ranges[--machine->range_count];
    } else {
        ck_assert(!known && machine->range_count < TOPOLOGY_RANGES);
        size_t on = policy == SL_NUMA_LOCAL ? here(machine) : node;
        machine->ranges[machine->range_count++] = (topology_range){.at = (uintptr_t)at,
                                                                   .size = size,
                                                                   .policy = policy,
                                                                   .node = on,
                                                                   .touched = *(const uint8_t *)at != machine->left};
        machine->policies++;
    }
    sl_spin_unlock(&machine->lock);
    return error ? -1 : 0;
}

/* Pages without a policy lie on node 0, those of INTERLEAVE in turns. */
static int node_of(const topology *machine, const void *page) {
    for (size_t i = machine->moved_count; i-- > 0;)
        if (machine->moved[i].at == (uintptr_t)page) return machine->moved[i].node;
    const topology_range *range = topology_find(machine, page);
    if (!range) return 0;
    if (range->policy != SL_NUMA_INTERLEAVE) return (int)range->node;
    return (int)((uintptr_t)page / sl_page_size() % machine->nodes);
}

static int move_pages(void *ctx, void **pages, size_t count, const int *to, int *status) {
    topology *machine = lock_machine(ctx);
    int error = machine->move_error;
    if (error) errno = error;
    for (size_t i = 0; i < count && !error; i++) {
        ck_assert_uint_eq((uintptr_t)pages[i] % sl_page_size(), 0);
        status[i] = node_of(machine, pages[i]);
        if (!to) continue;
        if (machine->stuck && ++machine->move_requests % machine->stuck == 0) {
            status[i] = -EACCES;
            continue;
        }
        ck_assert_uint_lt(machine->moved_count, TOPOLOGY_PAGES);
        machine->moved[machine->moved_count].at = (uintptr_t)pages[i];
        machine->moved[machine->moved_count++].node = status[i] = to[i];
    }
    sl_spin_unlock(&machine->lock);
    return error ? -1 : 0;
}

static int get_cpus(void *ctx, sl_cpu_set *cpus) {
    topology *machine = lock_machine(ctx);
    *cpus = *own_cpus(machine);
    sl_spin_unlock(&machine->lock);
    return 0;
}

static int set_cpus(void *ctx, const sl_cpu_set *cpus) {
    topology *machine = lock_machine(ctx);
    ck_assert_uint_lt(machine->pin_count, TOPOLOGY_PINS);
    *own_cpus(machine) = *cpus;
    size_t i = machine->pin_count++;
    machine->pins[i].thread = (pid_t)syscall(SYS_gettid);
    machine->pins[i].first = first_cpu(cpus, &machine->pins[i].count);
    sl_spin_unlock(&machine->lock);
    return 0;
}

void topology_init(topology *machine, size_t node_count) {
    *machine = (topology){.ops = {.ctx = machine,
                                  .nodes = nodes,
                                  .node_memory = node_memory,
                                  .node_cpus = node_cpus,
                                  .node_here = node_here,
                                  .set_policy = set_policy,
                                  .move_pages = move_pages,
                                  .get_cpus = get_cpus,
                                  .set_cpus = set_cpus},
                          .nodes = node_count,
                          .bare = SIZE_MAX,
                          .left = 0xab};
}

void topology_stand_on(topology *machine, size_t first, size_t count) {
    sl_spin_lock(&machine->lock);
    set_cpus_of(machine, first, count, own_cpus(machine));
    sl_spin_unlock(&machine->lock);
}
