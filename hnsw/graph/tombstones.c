#include "hnsw/graph/tombstones.h"

#include "hnsw/graph/arrays.h"
#include "hnsw/graph/ids.h"
#include "hnsw/graph/publish.h"
#include "hnsw/graph/reserve.h"

size_t sl_tombstones_count(const sl_graph *graph) {
    const uint64_t *tombstones = sl_tombstones(graph);
    size_t marks = 0, words = graph->n / 64, rest = graph->n % 64;
    for (size_t i = 0; i < words; i++)
        marks += (size_t)__builtin_popcountll(tombstones[i]);
    if (rest) marks += (size_t)__builtin_popcountll(tombstones[words] << (64 - rest));
    return marks;
}

sl_status sl_tombstones_check(const sl_graph *graph) {
    const uint64_t *tombstones = sl_tombstones(graph);
    if (!tombstones) return SL_OK;
    size_t marks = sl_tombstones_count(graph), words = sl_tombstones_bytes(graph->n) / sizeof *tombstones;
    if (marks != graph->deleted_count)
        return sl_fail(SL_ECORRUPT,
                       "%zu vectors are marked as deleted, where the index says %zu; build it again from "
                       "its vectors",
                       marks, graph->deleted_count);
    if (graph->n % 64 && tombstones[words - 1] >> (graph->n % 64))
        return sl_fail(SL_ECORRUPT, "vectors that are not there are marked as deleted; build the index again from its "
                                    "vectors");
    return SL_OK;
}

void sl_tombstones_extend(const sl_index *index, size_t first) {
    const uint64_t *tombstones = sl_tombstones(&index->graph);
    if (!index->writer || !tombstones || sl_index_is_direct(index)) return;
    const size_t from = first / 64;
    sl_index_touch(index, &tombstones[from], sl_tombstones_bytes(index->graph.n) - from * sizeof *tombstones);
}

void sl_tombstone_flip(sl_index *index, uint32_t node) {
    uint64_t *word = &sl_tombstones(&index->graph)[node / 64];
    __atomic_store_n(word, *word ^ (uint64_t)1 << (node % 64), __ATOMIC_RELAXED);
    sl_index_touch(index, word, sizeof *word);
}

/* Refuses ids[i], which is not in the index or stands twice in the list. */
static sl_status refuse_id(const uint64_t *ids, size_t i) {
    for (size_t j = 0; j < i; j++)
        if (ids[j] == ids[i])
            return sl_fail(SL_ENOTFOUND, "id %llu is given twice, as number %zu and %zu; give each once",
                           (unsigned long long)ids[i], j, i);
    return sl_fail(SL_ENOTFOUND,
                   "number %zu: id %llu is not in the index, or was deleted before; nothing was "
                   "deleted: leave it out",
                   i, (unsigned long long)ids[i]);
}

/* Marks the nodes of the ids, up to the first id that is missing. An id given twice is missing the second time. The
 * marked nodes are added to `marked`. */
static sl_status mark_ids(sl_index *index, const uint64_t *ids, size_t n, sl_node_list *marked) {
    for (size_t i = 0; i < n; i++) {
        const size_t before = marked->count;
        sl_status status = sl_id_nodes(index, ids[i], marked);
        if (status == SL_OK && marked->count == before) status = refuse_id(ids, i);
        if (status != SL_OK) {
            marked->count = before;
            return status;
        }
        for (size_t j = before; j < marked->count; j++)
            sl_tombstone_flip(index, marked->nodes[j]);
    }
    return SL_OK;
}

sl_status sl_index_delete(sl_index *index, const uint64_t *ids, size_t n) {
    if (!index || (n && !ids)) return sl_fail(SL_EINVAL, "index or ids is NULL");
    SL_TRY(sl_index_writable(index));
    if (n == 0) return SL_OK;
    sl_node_list marked = {0};
    void *block;
    if (!sl_tombstones(&index->graph)) {
        SL_TRY(sl_mem_alloc(&index->layer0, sl_tombstones_bytes(index->graph.capacity), &block));
        sl_array_put(&index->graph, SL_ARRAY_TOMBSTONES, block, 1);
    }
    if (index->writer)
        SL_TRY(sl_writable_reserve(index->writer, sl_tombstones(&index->graph), sl_tombstones_bytes(index->graph.n)));
    sl_publish_deleting(index);
    sl_status status = mark_ids(index, ids, n, &marked);
    if (status == SL_OK) index->graph.deleted_count += marked.count;
    for (size_t i = 0; i < marked.count && status != SL_OK; i++)
        sl_tombstone_flip(index, marked.nodes[i]);
    sl_publish_deleted(index);
    sl_node_list_free(&marked, &index->graph.allocator);
    return status;
}
