#include "hnsw/place/replicas.h"

#include "base/thread.h"
#include "hnsw/graph/links.h"
#include "hnsw/graph/upper.h"

#include <stdio.h>
#include <string.h>

/* A copy, at the head of its memory. */
typedef struct sl_replica {
    sl_upper upper;
    size_t node, size; /* the memory node; bytes of the whole block */
    struct sl_replica *next;
    uint64_t dropped; /* no reader that enters from this epoch on can hold the copy */
} sl_replica;

struct sl_replicas {
    const sl_numa *numa;
    sl_spin lock;        /* held while copies are made, dropped or freed */
    int made;            /* atomic: the copies of the present upper layers were made */
    sl_replica *dropped; /* copies that readers may still have */
    size_t nodes;
    sl_replica *on[]; /* atomic; NULL: the node has no copy */
};

static size_t replicas_bytes(size_t nodes) {
    return sizeof(sl_replicas) + nodes * sizeof(sl_replica *);
}

sl_status sl_replicas_init(sl_index *index) {
    const sl_numa *numa = index->numa;
    void *block;
    if (!numa || numa->nodes < 2) return SL_OK;
    SL_TRY(sl_mem_alloc(&index->graph.allocator, replicas_bytes(numa->nodes), &block));
    index->graph.replicas = block;
    index->graph.replicas->numa = numa;
    index->graph.replicas->nodes = numa->nodes;
    return SL_OK;
}

static void replica_free(const sl_replicas *replicas, sl_replica *replica) {
    sl_numa_memory memory = {replicas->numa, SL_NUMA_BIND, replica->node};
    sl_allocator allocator = sl_numa_allocator(&memory);
    sl_mem_free(&allocator, replica, replica->size);
}

/* Frees the dropped copies that no reader can hold. The caller holds the lock. */
static void collect(sl_replicas *replicas, uint64_t oldest) {
    for (sl_replica **at = &replicas->dropped; *at;) {
        sl_replica *replica = *at;
        if (replica->dropped > oldest) {
            at = &replica->next;
            continue;
        }
        *at = replica->next;
        replica_free(replicas, replica);
    }
}

static void drop_all(sl_replicas *replicas, uint64_t epoch) {
    for (size_t node = 0; node < replicas->nodes; node++) {
        sl_replica *replica = __atomic_exchange_n(&replicas->on[node], NULL, __ATOMIC_SEQ_CST);
        if (!replica) continue;
        replica->dropped = epoch;
        replica->next = replicas->dropped;
        replicas->dropped = replica;
    }
    __atomic_store_n(&replicas->made, 0, __ATOMIC_RELEASE);
}

void sl_replicas_drop(sl_index *index) {
    sl_replicas *replicas = index->graph.replicas;
    if (!replicas) return;
    sl_spin_lock_owned(&replicas->lock);
    drop_all(replicas, sl_epochs_now(&index->versions->epochs) + 1);
    collect(replicas, sl_epochs_oldest(&index->versions->epochs));
    sl_spin_unlock(&replicas->lock);
}

void sl_replicas_free(sl_index *index) {
    sl_replicas *replicas = index->graph.replicas;
    if (!replicas) return;
    drop_all(replicas, 0);
    collect(replicas, UINT64_MAX);
    sl_mem_free(&index->graph.allocator, replicas, replicas_bytes(replicas->nodes));
    index->graph.replicas = NULL;
}

static sl_status copy_upper(const sl_graph *graph, size_t node) {
    sl_replicas *replicas = graph->replicas;
    sl_numa_memory memory = {replicas->numa, SL_NUMA_BIND, node};
    const size_t head = sl_round_up(sizeof(sl_replica), SL_CACHE_LINE), size = head + sl_upper_copy_size(graph);
    sl_allocator allocator = sl_numa_allocator(&memory);
    sl_copying parts[SL_UPPER_PARTS];
    void *block;
    SL_TRY(sl_mem_alloc(&allocator, size, &block));
    sl_replica *replica = block;
    *replica = (sl_replica){.node = node, .size = size};
    replica->upper = sl_upper_lay_out(graph, (uint8_t *)block + head, parts);
    for (size_t i = 0; i < SL_UPPER_PARTS; i++)
        sl_links_copy(parts[i].to, (const uint32_t *)parts[i].from, parts[i].size / sizeof(uint32_t));
    __atomic_store_n(&replicas->on[node], replica, __ATOMIC_SEQ_CST);
    return SL_OK;
}

static void copy_to_nodes(const sl_index *index, const sl_graph *graph) {
    for (size_t node = 0; node < graph->replicas->nodes; node++) {
        if (!sl_numa_serves(index->numa, node) || copy_upper(graph, node) == SL_OK) continue;
        if (!index->log) continue;
        char message[128];
        snprintf(message, sizeof message, "no copy of the upper layers on memory node %zu, for want of %zu bytes", node,
                 sl_upper_copy_size(graph));
        index->log(index->log_ctx, SL_LOG_WARN, message);
    }
}

void sl_replicas_make(const sl_index *index) {
    sl_replicas *replicas = index->graph.replicas;
    /* Upper layers that another process extends would need new copies for every search. */
    if (!replicas || index->published || __atomic_load_n(&replicas->made, __ATOMIC_ACQUIRE)) return;
    sl_reading reading;
    sl_spin_lock_owned(&replicas->lock);
    const sl_graph *graph = sl_reading_begin(index, &reading);
    if (!replicas->made && graph->upper.count) {
        copy_to_nodes(index, graph);
        __atomic_store_n(&replicas->made, 1, __ATOMIC_RELEASE);
    }
    sl_reading_end(&reading);
    sl_spin_unlock(&replicas->lock);
}

size_t sl_replicas_count(const sl_graph *graph) {
    const sl_replicas *replicas = graph->replicas;
    size_t count = 0;
    for (size_t node = 0; replicas && node < replicas->nodes; node++)
        count += __atomic_load_n(&replicas->on[node], __ATOMIC_ACQUIRE) != NULL;
    return count;
}

/* A copy of earlier upper layers lacks the slots that were added since. */
const sl_upper *sl_replicas_here(const sl_graph *graph) {
    const sl_replicas *replicas = graph->replicas;
    int node = replicas->numa->ops.node_here(replicas->numa->ops.ctx);
    if (node < 0 || (size_t)node >= replicas->nodes) return &graph->upper;
    const sl_replica *replica = __atomic_load_n(&replicas->on[node], __ATOMIC_SEQ_CST);
    return replica && replica->upper.count == graph->upper.count ? &replica->upper : &graph->upper;
}
