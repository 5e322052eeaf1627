#include "hnsw/place/numa_place.h"

#include "base/numa.h"
#include "base/numa_system.h"
#include "base/params.h"
#include "hnsw/graph/arrays.h"
#include "hnsw/place/replicas.h"

#include <stdio.h>

/* Bytes of a mapped file read between two moves and reports of progress. */
#define WINDOW ((size_t)8 << 20)

size_t sl_placed_arrays(const sl_graph *graph, sl_span out[SL_ARRAY_KINDS]) {
    const size_t n = graph->place == SL_PLACE_DRAM ? graph->capacity : graph->n;
    size_t count = 0;
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++) {
        const sl_span span = sl_array_span(graph, kind, 0, n);
        if (span.size && (sl_array_lines[kind].flags & SL_ARRAY_PLACED)) out[count++] = span;
    }
    return count;
}

sl_status sl_numa_place_init(sl_index *index, sl_numa_policy policy, size_t node, const sl_numa_ops *ops) {
    SL_TRY(sl_numa_open(policy, node, ops, &index->graph.allocator, &index->numa));
    if (!index->numa) return SL_OK;
    index->layer0_memory = (sl_numa_memory){index->numa, index->numa->policy, index->numa->node};
    index->layer0 = sl_numa_allocator(&index->layer0_memory);
    return sl_replicas_init(index);
}

void sl_numa_place_free(sl_index *index) {
    sl_replicas_free(index);
    sl_numa_close(index->numa);
    index->numa = NULL;
}

/* Reads each page of a range of the mapping into memory. */
static void touch_pages(sl_index *index, const uint8_t *at, size_t size) {
    index->store->medium->advise_soon(at, size);
    for (size_t byte = 0; byte < size; byte += 4096)
        (void)*(const volatile uint8_t *)(at + byte);
}

sl_status sl_numa_place_read(sl_index *index, int prefault, sl_progress *progress) {
    sl_span arrays[SL_ARRAY_KINDS];
    uint64_t stayed = 0;
    if (!(index->numa || prefault) || index->graph.place == SL_PLACE_DRAM) return SL_OK;
    size_t count = sl_placed_arrays(&index->graph, arrays);
    for (size_t i = 0; i < count; i++)
        for (size_t at = 0, some; at < arrays[i].size; at += some) {
            const uint8_t *from = (const uint8_t *)arrays[i].at + at;
            some = arrays[i].size - at < WINDOW ? arrays[i].size - at : WINDOW;
            touch_pages(index, from, some);
            if (index->numa) SL_TRY(sl_numa_move(index->numa, from, some, index->store->base, &stayed));
            sl_progress_step(progress, some);
            if (sl_progress_cancelled(progress)) return sl_progress_end(progress);
        }
    if (!stayed || !index->log) return SL_OK;
    char message[160];
    snprintf(
        message, sizeof message,
        "%llu bytes of the mapped file stay on other memory nodes than asked for: other processes have them mapped",
        (unsigned long long)stayed);
    index->log(index->log_ctx, SL_LOG_WARN, message);
    return SL_OK;
}

sl_status sl_index_get_numa(const sl_index *index, sl_index_numa *out) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    SL_TRY(sl_params_check_out(out, "sl_index_numa"));
    sl_numa_ops ops = index->numa ? index->numa->ops : sl_numa_ops_of(NULL);
    sl_index_numa mine = {.copies = sl_replicas_count(&index->graph)};
    sl_span arrays[SL_ARRAY_KINDS];
    SL_TRY(sl_numa_count_nodes(&ops, &mine.nodes));
    if (index->numa) {
        mine.policy = index->numa->policy;
        mine.node = index->numa->node;
    }
    size_t count = sl_placed_arrays(&index->graph, arrays);
    for (size_t i = 0; i < count; i++)
        SL_TRY(sl_numa_count(&ops, arrays[i].at, arrays[i].size, mine.bytes, &mine.bytes_absent));
    sl_params_out(out, &mine, sizeof mine);
    return SL_OK;
}
