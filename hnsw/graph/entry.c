#include "hnsw/graph/entry.h"

#include "hnsw/graph/publish.h"

sl_entry sl_entry_in(const sl_graph *graph, const sl_upper *upper) {
    uint64_t word = __atomic_load_n(&graph->entry, __ATOMIC_ACQUIRE);
    uint32_t level = (uint32_t)(word >> 32), low = (uint32_t)word;
    if (level == 0) return (sl_entry){0, SL_NONE, low};
    return (sl_entry){level, low, upper->nodes[low]};
}

sl_entry sl_entry_get(const sl_graph *graph) {
    return sl_entry_in(graph, &graph->upper);
}

void sl_entry_set(sl_index *index, uint32_t level, uint32_t slot_or_node) {
    __atomic_store_n(&index->graph.entry, (uint64_t)level << 32 | slot_or_node, __ATOMIC_RELEASE);
    sl_publish_entry(index);
}
