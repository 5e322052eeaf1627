#include "hnsw/graph/tombstones.h"

#include "hnsw/graph/arrays.h"
#include "hnsw/graph/ids.h"
#include "hnsw/graph/lives.h"

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
    __atomic_store_n(word, *word ^ (uint64_t)1 << (node % 64), __ATOMIC_RELEASE);
    sl_index_touch(index, word, sizeof *word);
}

sl_status sl_tombstones_reserve(sl_index *index) {
    void *block;
    if (!sl_tombstones(&index->graph)) {
        SL_TRY(sl_mem_alloc(&index->layer0, sl_tombstones_bytes(index->graph.capacity), &block));
        sl_array_put(&index->graph, SL_ARRAY_TOMBSTONES, block, 1);
    }
    if (!index->writer) return SL_OK;
    return sl_writable_reserve(index->writer, sl_tombstones(&index->graph), sl_tombstones_bytes(index->graph.n));
}

sl_status sl_lives_reserve(sl_index *index) {
    SL_TRY(sl_tombstones_reserve(index));
    if (index->graph.lives.nodes) return SL_OK;
    return sl_lives_grow(&index->graph.lives, index->graph.capacity, &index->graph.lives);
}

/* Flips the marks of nodes [first, first + n), word by word. */
static void flip_range(sl_index *index, size_t first, size_t n) {
    uint64_t *words = sl_tombstones(&index->graph);
    for (size_t node = first, end = first + n; node < end;) {
        const size_t word = node / 64, left = end - node, some = 64 - node % 64 < left ? 64 - node % 64 : left;
        const uint64_t bits = ~(uint64_t)0 >> (64 - some) << (node % 64);
        __atomic_store_n(&words[word], words[word] ^ bits, __ATOMIC_RELEASE);
        sl_index_touch(index, &words[word], sizeof *words);
        node += some;
    }
}

void sl_nodes_hide(sl_index *index, size_t first, size_t n) {
    /* An add that was taken back may have left lives at these numbers. */
    sl_lives_clear(index, first, n);
    flip_range(index, first, n);
    index->graph.deleted_count += n;
}

void sl_nodes_show(sl_index *index, size_t first, size_t n) {
    flip_range(index, first, n);
    index->graph.deleted_count -= n;
}

void sl_nodes_take_back(sl_index *index, size_t first, size_t n) {
    const uint64_t epoch = sl_epochs_now(&index->versions->epochs) + 1;
    for (size_t node = first; node < first + n; node++)
        sl_life_unborn(index, node, epoch);
    sl_nodes_show(index, first, n);
}

void sl_nodes_delete(sl_index *index, const sl_node_list *nodes) {
    const uint64_t epoch = sl_epochs_now(&index->versions->epochs) + 1;
    for (size_t i = 0; i < nodes->count; i++) {
        sl_life_end(index, nodes->nodes[i], epoch);
        sl_tombstone_flip(index, nodes->nodes[i]);
    }
    index->graph.deleted_count += nodes->count;
    index->has_deleted |= nodes->count > 0;
}

void sl_nodes_replace(sl_index *index, const sl_node_list *nodes, size_t first, size_t n) {
    const uint64_t epoch = sl_epochs_now(&index->versions->epochs) + 1;
    sl_nodes_delete(index, nodes);
    for (size_t node = first; node < first + n; node++)
        sl_life_begin(index, node, epoch);
}
