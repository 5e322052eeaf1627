#include "hnsw/graph/checksums.h"

#include "base/crew.h"
#include "hnsw/graph/arrays.h"

/* Nodes a thread takes at a time. */
enum { RANGE = 1024 };

int sl_checksum_holds(const sl_graph *graph, uint32_t node) {
    return *sl_checksum_at(graph, node) == sl_checksum_of(graph, node);
}

/* Lists the bad nodes in a second pass that starts at the first one. Bad nodes are few, so the pass is rare and ends
 * early. */
static void list_bad_nodes(const sl_graph *graph, size_t first, sl_checksums_found *found, uint64_t *ids, size_t room) {
    found->node = first;
    found->first = sl_id_of(graph, (uint32_t)first);
    for (size_t node = first, count = 0; count < room && count < found->bad && node < graph->n; node++)
        if (!sl_checksum_holds(graph, (uint32_t)node)) ids[count++] = sl_id_of(graph, (uint32_t)node);
}

typedef struct sl_checksum_task {
    const sl_graph *graph;
    sl_progress *progress;
    size_t checked, bad; /* atomic */
    size_t first;        /* atomic: the first bad node */
} sl_checksum_task;

static void check_range(void *ctx, size_t from, size_t to) {
    sl_checksum_task *task = ctx;
    size_t checked = 0, bad = 0, first = SIZE_MAX;
    for (size_t node = from; node < to && !sl_progress_cancelled(task->progress); node++, checked++) {
        if (sl_checksum_holds(task->graph, (uint32_t)node)) continue;
        if (!bad++) first = node;
    }
    sl_progress_step(task->progress, checked);
    __atomic_fetch_add(&task->checked, checked, __ATOMIC_RELAXED);
    __atomic_fetch_add(&task->bad, bad, __ATOMIC_RELAXED);
    sl_atomic_min(&task->first, first);
}

sl_checksums_found sl_checksums_check(const sl_graph *graph, size_t threads, uint64_t *ids, size_t room,
                                      sl_progress *progress) {
    sl_checksums_found found = {0};
    sl_checksum_task task = {.graph = graph, .progress = progress, .first = SIZE_MAX};
    if (!graph->arrays[SL_ARRAY_CHECKSUMS].at) return found;
    sl_crew_run(threads, graph->n, RANGE, check_range, &task);
    found.checked = task.checked;
    found.bad = task.bad;
    if (found.bad) list_bad_nodes(graph, task.first, &found, ids, room);
    return found;
}
