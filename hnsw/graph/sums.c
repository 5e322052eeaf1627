#include "hnsw/graph/sums.h"

#include "base/crew.h"
#include "hnsw/graph/arrays.h"

/* Nodes that a thread takes at a time. */
enum { RANGE = 1024 };

int sl_sum_holds(const sl_graph *graph, uint32_t node) {
    return *sl_sum_at(graph, node) == sl_sum_of(graph, node);
}

/* Lists the bad nodes by a second pass from the first one. Bad nodes are few, so the pass is rare and ends early. */
static void list_bad(const sl_graph *graph, size_t first, sl_sums_found *found, uint64_t *ids, size_t room) {
    found->node = first;
    found->first = sl_id_of(graph, (uint32_t)first);
    for (size_t node = first, count = 0; count < room && count < found->bad && node < graph->n; node++)
        if (!sl_sum_holds(graph, (uint32_t)node)) ids[count++] = sl_id_of(graph, (uint32_t)node);
}

typedef struct sl_summing {
    const sl_graph *graph;
    sl_progress *progress;
    size_t checked, bad; /* atomic */
    size_t first;        /* atomic: the first bad node */
} sl_summing;

static void check_range(void *ctx, size_t from, size_t to) {
    sl_summing *summing = ctx;
    size_t checked = 0, bad = 0, first = SIZE_MAX;
    for (size_t node = from; node < to && !sl_progress_cancelled(summing->progress); node++, checked++) {
        if (sl_sum_holds(summing->graph, (uint32_t)node)) continue;
        if (!bad++) first = node;
    }
    sl_progress_step(summing->progress, checked);
    __atomic_fetch_add(&summing->checked, checked, __ATOMIC_RELAXED);
    __atomic_fetch_add(&summing->bad, bad, __ATOMIC_RELAXED);
    sl_keep_least(&summing->first, first);
}

sl_sums_found sl_sums_check(const sl_graph *graph, size_t threads, uint64_t *ids, size_t room, sl_progress *progress) {
    sl_sums_found found = {0};
    sl_summing summing = {.graph = graph, .progress = progress, .first = SIZE_MAX};
    if (!graph->arrays[SL_ARRAY_SUMS].at) return found;
    sl_crew_run(threads, graph->n, RANGE, check_range, &summing);
    found.checked = summing.checked;
    found.bad = summing.bad;
    if (found.bad) list_bad(graph, summing.first, &found, ids, room);
    return found;
}
