/* The table of the real system, through libnuma if this build has it. libnuma prints some failures and ends the process
 * over others. Calls that would meet these go to the system directly: /sys lists the CPUs of a node, and mbind sets
 * policies. */
#define _GNU_SOURCE
#include "base/numa_system.h"

#include "base/system.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SL_HAVE_NUMA
#include <numa.h>
#include <numaif.h>

static size_t system_nodes(void *ctx) {
    (void)ctx;
    if (numa_available() < 0) {
        errno = ENOSYS;
        return 0;
    }
    int last = numa_max_node();
    return last >= 0 ? (size_t)last + 1 : 1;
}

/* Returns the bytes of a node, or 0 if this process may not allocate from it. */
static uint64_t system_node_memory(void *ctx, size_t node) {
    (void)ctx;
    if (node >= SL_MAX_NODES || !numa_bitmask_isbitset(numa_all_nodes_ptr, (unsigned)node)) return 0;
    long long size = numa_node_size64((int)node, NULL);
    return size > 0 ? (uint64_t)size : 0;
}

static int system_node_here(void *ctx) {
    unsigned cpu, node;
    (void)ctx;
    return getcpu(&cpu, &node) == 0 ? (int)node : -1;
}

static int system_set_policy(void *ctx, void *at, size_t size, sl_numa_policy policy, size_t node) {
    enum { BITS = 8 * sizeof(unsigned long) };
    unsigned long mask[SL_MAX_NODES / BITS] = {0};
    (void)ctx;
    if (policy == SL_NUMA_DEFAULT) return (int)mbind(at, size, MPOL_DEFAULT, NULL, 0, 0);
    if (policy == SL_NUMA_LOCAL) return (int)mbind(at, size, MPOL_LOCAL, NULL, 0, 0);
    for (size_t i = 0; i < SL_MAX_NODES; i++)
        if (policy == SL_NUMA_BIND ? i == node : numa_bitmask_isbitset(numa_all_nodes_ptr, (unsigned)i))
            mask[i / BITS] |= 1ul << (i % BITS);
    /* Memory that the allocator reuses has its pages already: they are moved. */
    return (int)mbind(at, size, policy == SL_NUMA_BIND ? MPOL_BIND : MPOL_INTERLEAVE, mask, SL_MAX_NODES + 1,
                      MPOL_MF_MOVE);
}

static int system_move_pages(void *ctx, void **pages, size_t count, const int *nodes, int *status) {
    (void)ctx;
    /* A result above 0 counts the pages that were not moved; status says why for each page. */
    return move_pages(0, count, pages, nodes, status, nodes ? MPOL_MF_MOVE : 0) < 0 ? -1 : 0;
}

#else

static int fail_no_libnuma(void) {
    errno = ENOSYS;
    return -1;
}

static size_t system_nodes(void *ctx) {
    (void)ctx;
    (void)fail_no_libnuma();
    return 0;
}

static uint64_t system_node_memory(void *ctx, size_t node) {
    (void)ctx;
    (void)node;
    return 0;
}

static int system_node_here(void *ctx) {
    (void)ctx;
    return fail_no_libnuma();
}

static int system_set_policy(void *ctx, void *at, size_t size, sl_numa_policy policy, size_t node) {
    (void)ctx;
    (void)at;
    (void)size;
    (void)policy;
    (void)node;
    return fail_no_libnuma();
}

static int system_move_pages(void *ctx, void **pages, size_t count, const int *nodes, int *status) {
    (void)ctx;
    (void)pages;
    (void)count;
    (void)nodes;
    (void)status;
    return fail_no_libnuma();
}

#endif

/* Reads a list such as "0-3,8,10-11". */
static void parse_cpus(const char *text, sl_cpu_set *cpus) {
    for (char *end; *text >= '0' && *text <= '9'; text = *end == ',' ? end + 1 : end) {
        unsigned long first = strtoul(text, &end, 10), last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        for (; first <= last && first < SL_MAX_CPUS; first++)
            cpus->words[first / 64] |= (uint64_t)1 << (first % 64);
    }
}

static int system_node_cpus(void *ctx, size_t node, sl_cpu_set *cpus) {
    char path[64], line[4096];
    (void)ctx;
    memset(cpus, 0, sizeof *cpus);
    snprintf(path, sizeof path, SL_NODE_FOLDER "/node%zu/cpulist", node);
    FILE *file = fopen(path, "re");
    if (!file) return -1;
    if (fgets(line, sizeof line, file)) parse_cpus(line, cpus);
    fclose(file);
    return 0;
}

static int system_get_cpus(void *ctx, sl_cpu_set *cpus) {
    (void)ctx;
    memset(cpus, 0, sizeof *cpus);
    return sched_getaffinity(0, sizeof *cpus, (cpu_set_t *)(void *)cpus);
}

static int system_set_cpus(void *ctx, const sl_cpu_set *cpus) {
    (void)ctx;
    return sched_setaffinity(0, sizeof *cpus, (const cpu_set_t *)(const void *)cpus);
}

sl_numa_ops sl_numa_ops_of(const sl_numa_ops *given) {
    sl_numa_ops ops = given ? *given : (sl_numa_ops){0};
#define SL_OR_SYSTEM(entry)                                                                                            \
    if (!ops.entry) ops.entry = system_##entry
    SL_OR_SYSTEM(nodes);
    SL_OR_SYSTEM(node_memory);
    SL_OR_SYSTEM(node_cpus);
    SL_OR_SYSTEM(node_here);
    SL_OR_SYSTEM(set_policy);
    SL_OR_SYSTEM(move_pages);
    SL_OR_SYSTEM(get_cpus);
    SL_OR_SYSTEM(set_cpus);
#undef SL_OR_SYSTEM
    return ops;
}
