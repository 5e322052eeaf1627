#include "hnsw/place/replicas.h"

#include "base/thread.h"
#include "hnsw/graph/upper.h"

#include <stdio.h>
#include <string.h>

typedef struct sl_replica {
    sl_upper upper;
    sl_numa_memory memory;
    void *block; /* the memory of the arrays; NULL: the node has no copy */
} sl_replica;

struct sl_replicas {
    const sl_numa *numa;
    sl_spin lock; /* held by the thread that makes the copies */
    int made;     /* atomic: the copies may be read */
    size_t nodes;
    size_t size; /* bytes of each block */
    sl_replica on[];
};

static size_t replicas_bytes(size_t nodes) {
    return sizeof(sl_replicas) + nodes * sizeof(sl_replica);
}

sl_status sl_replicas_init(sl_index *index) {
    const sl_numa *numa = index->numa;
    void *block;
    if (!numa || numa->nodes < 2) return SL_OK;
    SL_TRY(sl_mem_alloc(&index->graph.allocator, replicas_bytes(numa->nodes), &block));
    index->graph.replicas = block;
    index->graph.replicas->numa = numa;
    index->graph.replicas->nodes = numa->nodes;
    for (size_t node = 0; node < numa->nodes; node++)
        index->graph.replicas->on[node].memory = (sl_numa_memory){numa, SL_NUMA_BIND, node};
    return SL_OK;
}

void sl_replicas_free(sl_graph *graph) {
    if (!graph->replicas) return;
    sl_replicas_drop(graph);
    sl_mem_free(&graph->allocator, graph->replicas, replicas_bytes(graph->replicas->nodes));
    graph->replicas = NULL;
}

void sl_replicas_drop(sl_graph *graph) {
    sl_replicas *replicas = graph->replicas;
    for (size_t node = 0; replicas && node < replicas->nodes; node++) {
        sl_allocator allocator = sl_numa_allocator(&replicas->on[node].memory);
        sl_mem_free(&allocator, replicas->on[node].block, replicas->size);
        replicas->on[node].block = NULL;
    }
    if (replicas) replicas->made = 0;
}

static sl_status copy_upper(const sl_graph *graph, sl_replica *replica, size_t size) {
    sl_copying parts[SL_UPPER_PARTS];
    sl_allocator allocator = sl_numa_allocator(&replica->memory);
    SL_TRY(sl_mem_alloc(&allocator, size, &replica->block));
    replica->upper = sl_upper_lay_out(graph, replica->block, parts);
    for (size_t i = 0; i < SL_UPPER_PARTS; i++)
        memcpy(parts[i].to, parts[i].from, parts[i].size);
    return SL_OK;
}

static void copy_to_nodes(const sl_index *index) {
    sl_replicas *replicas = index->graph.replicas;
    replicas->size = sl_upper_copy_size(&index->graph);
    for (size_t node = 0; node < replicas->nodes; node++) {
        if (!sl_numa_serves(index->numa, node) ||
            copy_upper(&index->graph, &replicas->on[node], replicas->size) == SL_OK)
            continue;
        if (!index->log) continue;
        char message[128];
        snprintf(message, sizeof message, "no copy of the upper layers on memory node %zu, for want of %zu bytes", node,
                 replicas->size);
        index->log(index->log_ctx, SL_LOG_WARN, message);
    }
}

void sl_replicas_make(const sl_index *index) {
    sl_replicas *replicas = index->graph.replicas;
    /* Upper layers that another process extends would need new copies for every search. */
    if (!replicas || index->published || index->graph.upper.count == 0 ||
        __atomic_load_n(&replicas->made, __ATOMIC_ACQUIRE))
        return;
    sl_spin_lock_owned(&replicas->lock);
    if (!replicas->made) {
        copy_to_nodes(index);
        __atomic_store_n(&replicas->made, 1, __ATOMIC_RELEASE);
    }
    sl_spin_unlock(&replicas->lock);
}

size_t sl_replicas_count(const sl_graph *graph) {
    const sl_replicas *replicas = graph->replicas;
    size_t count = 0;
    if (!replicas || !__atomic_load_n(&replicas->made, __ATOMIC_ACQUIRE)) return 0;
    for (size_t node = 0; node < replicas->nodes; node++)
        count += replicas->on[node].block != NULL;
    return count;
}

const sl_upper *sl_replicas_here(const sl_graph *graph) {
    const sl_replicas *replicas = graph->replicas;
    if (!__atomic_load_n(&replicas->made, __ATOMIC_ACQUIRE)) return &graph->upper;
    int node = replicas->numa->ops.node_here(replicas->numa->ops.ctx);
    if (node < 0 || (size_t)node >= replicas->nodes || !replicas->on[node].block) return &graph->upper;
    return &replicas->on[node].upper;
}
