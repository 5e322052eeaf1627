#include "base/numa.h"

#include "base/numa_system.h"
#include "base/params.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Pages that one call asks about or moves. */
enum { BATCH_PAGES = 512 };

size_t sl_page_size(void) {
    long page = sysconf(_SC_PAGESIZE);
    return page > 0 ? (size_t)page : 4096;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Names of policies
 * ------------------------------------------------------------------------------------------------------------- */

static const char *const policy_names[] = {[SL_NUMA_DEFAULT] = "default",
                                           [SL_NUMA_INTERLEAVE] = "interleave",
                                           [SL_NUMA_BIND] = "bind",
                                           [SL_NUMA_LOCAL] = "local"};

const char *sl_numa_policy_name(sl_numa_policy policy) {
    return (size_t)policy < sizeof policy_names / sizeof *policy_names ? policy_names[policy] : "?";
}

sl_status sl_numa_parse(const char *text, sl_numa_policy *policy, size_t *node) {
    if (!text || !policy || !node) return sl_fail(SL_EINVAL, "text, policy or node is NULL");
    *node = 0;
    for (int i = SL_NUMA_DEFAULT; i <= SL_NUMA_LOCAL; i++) {
        *policy = (sl_numa_policy)i;
        if (i != SL_NUMA_BIND && strcmp(text, policy_names[i]) == 0) return SL_OK;
    }
    *policy = SL_NUMA_BIND;
    char *end = NULL;
    errno = 0;
    if (strncmp(text, "bind:", 5) == 0 && text[5] >= '0' && text[5] <= '9') *node = strtoul(text + 5, &end, 10);
    if (end && !*end && errno == 0) return SL_OK;
    *policy = SL_NUMA_DEFAULT;
    *node = 0;
    return sl_fail(SL_EINVAL, "'%s' is no NUMA policy; give interleave, bind:N with the number of a node, or local",
                   text);
}

const char *sl_numa_format(sl_numa_policy policy, size_t node, char *text, size_t size) {
    if (policy == SL_NUMA_BIND)
        snprintf(text, size, "bind:%zu", node);
    else
        snprintf(text, size, "%s", sl_numa_policy_name(policy));
    return text;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Nodes of the machine
 * ------------------------------------------------------------------------------------------------------------- */

/* Makes a failure of errno. */
static sl_status fail_by_errno(const char *what) {
    int error = errno;
    char text[128];
    if (strerror_r(error, text, sizeof text) != 0) snprintf(text, sizeof text, "error %d", error);
    if (error == ENOMEM) return sl_fail(SL_ENOMEM, "%s: %s; free memory", what, text);
    return sl_fail(SL_EUNSUPPORTED,
                   "%s: %s; the system or its container forbids it: allow mbind and move_pages (CAP_SYS_NICE where it "
                   "is docker's), or ask for no NUMA policy",
                   what, text);
}

static sl_status fail_no_nodes(void) {
#ifdef SL_HAVE_NUMA
    return fail_by_errno("cannot learn of the memory nodes");
#else
    return sl_fail(SL_EUNSUPPORTED, "this build has no libnuma; install it (libnuma-dev) and build anew, or ask for no "
                                    "NUMA policy");
#endif
}

sl_status sl_numa_count_nodes(const sl_numa_ops *ops, size_t *nodes) {
    *nodes = ops->nodes(ops->ctx);
    if (*nodes == 0) return fail_no_nodes();
    if (*nodes > SL_MAX_NODES)
        return sl_fail(SL_ELIMIT, "node numbers go up to %zu; this library knows %u", *nodes - 1, SL_MAX_NODES);
    return SL_OK;
}

static size_t count_cpus(const sl_cpu_set *cpus) {
    size_t count = 0;
    for (size_t i = 0; i < SL_MAX_CPUS / 64; i++)
        count += (size_t)__builtin_popcountll(cpus->words[i]);
    return count;
}

sl_status sl_numa_get_node(size_t node, sl_numa_node *out) {
    SL_TRY(sl_params_check_out(out, "sl_numa_node"));
    sl_numa_ops ops = sl_numa_ops_of(NULL);
    sl_numa_node mine = {.struct_size = sizeof mine};
    size_t nodes;
    SL_TRY(sl_numa_count_nodes(&ops, &nodes));
    if (node < nodes && ops.node_cpus(ops.ctx, node, &mine.cpus) == 0) {
        mine.memory = ops.node_memory(ops.ctx, node);
        mine.cpu_count = count_cpus(&mine.cpus);
    }
    if (!mine.memory && !mine.cpu_count) return sl_fail(SL_ENOTFOUND, "this machine has no memory node %zu", node);
    sl_params_out(out, &mine, sizeof mine);
    return SL_OK;
}

static sl_status check_node(const sl_numa_ops *ops, size_t node, size_t nodes) {
    if (node < nodes && ops->node_memory(ops->ctx, node)) return SL_OK;
    if (nodes == 1) return sl_fail(SL_EINVAL, "bind:%zu: this machine has one memory node, 0", node);
    return sl_fail(SL_EINVAL, "bind:%zu: this machine's memory nodes are numbered 0 to %zu%s; 'numactl -H' shows them",
                   node, nodes - 1, node < nodes ? ", and that one has no memory for this process" : "");
}

/* A container may forbid a policy. The refusal is reported here, because later it would look like a lack of memory. */
static sl_status try_policy(const sl_numa *numa) {
    const sl_numa_ops *ops = &numa->ops;
    size_t page = sl_page_size();
    void *block = numa->allocator.alloc(numa->allocator.ctx, page, page);
    if (!block) return sl_fail(SL_ENOMEM, "cannot allocate %zu bytes; free memory", page);
    char what[64], text[32];
    snprintf(what, sizeof what, "NUMA policy %s", sl_numa_format(numa->policy, numa->node, text, sizeof text));
    sl_status status = SL_OK;
    if (ops->set_policy(ops->ctx, block, page, numa->policy, numa->node) != 0 ||
        ops->set_policy(ops->ctx, block, page, SL_NUMA_DEFAULT, 0) != 0)
        status = fail_by_errno(what);
    numa->allocator.free(numa->allocator.ctx, block, page);
    return status;
}

sl_status sl_numa_open(sl_numa_policy policy, size_t node, const sl_numa_ops *given, const sl_allocator *allocator,
                       sl_numa **out) {
    *out = NULL;
    if (policy == SL_NUMA_DEFAULT) return SL_OK;
    if ((unsigned)policy > SL_NUMA_LOCAL) return sl_fail(SL_EINVAL, "NUMA policy %d is unknown", (int)policy);
    sl_numa_ops ops = sl_numa_ops_of(given);
    size_t nodes;
    SL_TRY(sl_numa_count_nodes(&ops, &nodes));
    if (policy == SL_NUMA_BIND) SL_TRY(check_node(&ops, node, nodes));
    size_t size = sizeof(sl_numa) + nodes * sizeof(sl_cpu_set);
    void *block;
    SL_TRY(sl_mem_alloc(allocator, size, &block));
    sl_numa *numa = block;
    *numa = (sl_numa){.ops = ops,
                      .policy = policy,
                      .node = policy == SL_NUMA_BIND ? node : 0,
                      .nodes = nodes,
                      .allocator = *allocator,
                      .size = size};
    for (size_t i = 0; i < nodes; i++)
        if (ops.node_cpus(ops.ctx, i, &numa->cpus[i]) != 0) memset(&numa->cpus[i], 0, sizeof numa->cpus[i]);
    sl_status status = try_policy(numa);
    if (status == SL_OK)
        *out = numa;
    else
        sl_numa_close(numa);
    return status;
}

void sl_numa_close(sl_numa *numa) {
    if (!numa) return;
    sl_allocator allocator = numa->allocator;
    sl_mem_free(&allocator, numa, numa->size);
}

int sl_numa_serves(const sl_numa *numa, size_t node) {
    if (numa->policy == SL_NUMA_BIND && node != numa->node) return 0;
    return count_cpus(&numa->cpus[node]) && numa->ops.node_memory(numa->ops.ctx, node);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Memory
 * ------------------------------------------------------------------------------------------------------------- */

/* Blocks have whole pages, so that no neighbour in memory shares their policy. Large blocks have whole huge pages: a
 * policy that ended within a huge page would split it. */
static size_t block_unit(size_t size) {
    return size >= SL_HUGE_PAGE ? SL_HUGE_PAGE : sl_page_size();
}

static void *placed_alloc(void *ctx, size_t size, size_t alignment) {
    const sl_numa_memory *memory = ctx;
    const sl_numa *numa = memory->numa;
    size_t unit = block_unit(size);
    if (size > SIZE_MAX - unit) return NULL;
    size = sl_round_up(size, unit);
    void *block = numa->allocator.alloc(numa->allocator.ctx, size, alignment < unit ? unit : alignment);
    if (!block || numa->ops.set_policy(numa->ops.ctx, block, size, memory->policy, memory->node) == 0) return block;
    numa->allocator.free(numa->allocator.ctx, block, size);
    return NULL;
}

/* Resets the policy, because the next owner of the memory hasn't asked for one. */
static void placed_free(void *ctx, void *block, size_t size) {
    const sl_numa_memory *memory = ctx;
    const sl_numa *numa = memory->numa;
    size = sl_round_up(size, block_unit(size));
    (void)numa->ops.set_policy(numa->ops.ctx, block, size, SL_NUMA_DEFAULT, 0);
    numa->allocator.free(numa->allocator.ctx, block, size);
}

sl_allocator sl_numa_allocator(sl_numa_memory *memory) {
    return (sl_allocator){memory, placed_alloc, placed_free};
}

/* ---------------------------------------------------------------------------------------------------------------
 * Threads
 * ------------------------------------------------------------------------------------------------------------- */

/* Finds the CPUs of a node that are also among `allowed`. Returns how many. */
static size_t allowed_cpus(const sl_numa *numa, size_t node, const sl_cpu_set *allowed, sl_cpu_set *out) {
    for (size_t i = 0; i < SL_MAX_CPUS / 64; i++)
        out->words[i] = numa->cpus[node].words[i] & allowed->words[i];
    return count_cpus(out);
}

/* Chooses the CPUs of a thread. Returns 0 if the thread should stay unpinned. */
static int choose_cpus(const sl_numa *numa, size_t thread, size_t threads, const sl_cpu_set *allowed, sl_cpu_set *out) {
    if (numa->policy == SL_NUMA_BIND) return thread < allowed_cpus(numa, numa->node, allowed, out);
    size_t usable[SL_MAX_NODES], count = 0;
    for (size_t node = 0; node < numa->nodes; node++)
        if (allowed_cpus(numa, node, allowed, out)) usable[count++] = node;
    if (count < 2) return 0;
    (void)allowed_cpus(numa, usable[thread * count / threads], allowed, out);
    return 1;
}

void sl_numa_pin_thread(const sl_numa *numa, size_t thread, size_t threads, sl_numa_pin *pin) {
    sl_cpu_set cpus;
    pin->pinned = 0;
    if (!numa || numa->nodes < 2 || numa->ops.get_cpus(numa->ops.ctx, &pin->before) != 0) return;
    if (!choose_cpus(numa, thread, threads, &pin->before, &cpus)) return;
    pin->pinned = numa->ops.set_cpus(numa->ops.ctx, &cpus) == 0;
}

void sl_numa_unpin_thread(const sl_numa *numa, const sl_numa_pin *pin) {
    if (pin->pinned) (void)numa->ops.set_cpus(numa->ops.ctx, &pin->before);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Pages
 * ------------------------------------------------------------------------------------------------------------- */

/* Lists the next pages of a range, from *at on. Returns how many. */
static size_t next_pages(uintptr_t *at, uintptr_t end, size_t page, void **pages) {
    size_t count = 0;
    for (; *at < end && count < BATCH_PAGES; *at += page)
        pages[count++] = (void *)*at;
    return count;
}

sl_status sl_numa_count(const sl_numa_ops *ops, const void *at, size_t size, uint64_t *bytes, uint64_t *absent) {
    void *pages[BATCH_PAGES];
    int status[BATCH_PAGES];
    size_t page = sl_page_size();
    uintptr_t next = (uintptr_t)at / page * page, end = (uintptr_t)at + size;
    for (size_t count; (count = next_pages(&next, end, page, pages)) > 0;) {
        if (ops->move_pages(ops->ctx, pages, count, NULL, status) != 0)
            return fail_by_errno("cannot learn where the pages of memory lie");
        for (size_t i = 0; i < count; i++)
            if (status[i] >= 0 && status[i] < (int)SL_MAX_NODES)
                bytes[status[i]] += page;
            else
                *absent += page;
    }
    return SL_OK;
}

/* Returns the node that the policy wants for the byte `offset` behind the origin. */
static int wanted_node(const sl_numa *numa, const size_t *nodes, size_t count, int here, size_t offset) {
    if (numa->policy == SL_NUMA_BIND) return (int)numa->node;
    if (numa->policy == SL_NUMA_LOCAL) return here;
    return (int)nodes[offset / SL_HUGE_PAGE % count];
}

/* Moves the pages that lie on other nodes than wanted. Adds to *stayed how many the system left in place. */
static sl_status move_misplaced(const sl_numa *numa, void **pages, const int *wanted, size_t count, size_t *stayed) {
    const sl_numa_ops *ops = &numa->ops;
    int status[BATCH_PAGES], to[BATCH_PAGES];
    size_t moving = 0;
    if (ops->move_pages(ops->ctx, pages, count, NULL, status) != 0)
        return fail_by_errno("cannot learn where the pages of a mapped file lie");
    for (size_t i = 0; i < count; i++)
        if (status[i] >= 0 && status[i] != wanted[i]) {
            pages[moving] = pages[i];
            to[moving++] = wanted[i];
        }
    if (moving && ops->move_pages(ops->ctx, pages, moving, to, status) != 0)
        return fail_by_errno("cannot move pages of a mapped file");
    for (size_t i = 0; i < moving; i++)
        *stayed += status[i] != to[i];
    return SL_OK;
}

sl_status sl_numa_move(const sl_numa *numa, const void *at, size_t size, const void *origin, uint64_t *stayed) {
    size_t nodes[SL_MAX_NODES], node_count = 0, page = sl_page_size();
    for (size_t node = 0; node < numa->nodes; node++)
        if (numa->ops.node_memory(numa->ops.ctx, node)) nodes[node_count++] = node;
    int here = numa->ops.node_here(numa->ops.ctx);
    if (node_count == 0 || here < 0) return fail_by_errno("cannot learn of the memory nodes");
    void *pages[BATCH_PAGES];
    int wanted[BATCH_PAGES];
    uintptr_t next = (uintptr_t)at / page * page, end = (uintptr_t)at + size;
    for (size_t count; (count = next_pages(&next, end, page, pages)) > 0;) {
        size_t left = 0;
        for (size_t i = 0; i < count; i++)
            wanted[i] = wanted_node(numa, nodes, node_count, here, (uintptr_t)pages[i] - (uintptr_t)origin);
        SL_TRY(move_misplaced(numa, pages, wanted, count, &left));
        *stayed += left * page;
    }
    return SL_OK;
}
