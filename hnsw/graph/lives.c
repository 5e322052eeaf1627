#include "hnsw/graph/lives.h"

#include <string.h>

/* Bytes that are copied at a time, unless all of them are zeros. */
enum { PAGE = 4096 };

static size_t words_of(size_t capacity) {
    return capacity / 64 + 1;
}

/* One block holds both arrays: lives first, then `changed`. */
static size_t block_bytes(size_t capacity) {
    return capacity * sizeof(sl_life) + words_of(capacity) * sizeof(uint64_t);
}

static void copy_touched(void *to, const void *from, size_t size) {
    static const uint8_t zeros[PAGE];
    for (size_t at = 0; at < size; at += PAGE) {
        const size_t some = size - at < PAGE ? size - at : PAGE;
        const uint8_t *page = (const uint8_t *)from + at;
        if (memcmp(page, zeros, some) != 0) memcpy((uint8_t *)to + at, page, some);
    }
}

sl_status sl_lives_grow(const sl_lives *from, size_t capacity, sl_lives *out) {
    void *block;
    SL_TRY(sl_mem_alloc_raw(&sl_sparse_allocator, block_bytes(capacity), &block));
    *out = (sl_lives){.nodes = block, .capacity = capacity};
    out->changed = (uint64_t *)(void *)(out->nodes + capacity);
    if (!from->nodes) return SL_OK;
    const size_t both = from->capacity < capacity ? from->capacity : capacity;
    copy_touched(out->nodes, from->nodes, both * sizeof *from->nodes);
    copy_touched(out->changed, from->changed, words_of(both) * sizeof *from->changed);
    return SL_OK;
}

size_t sl_lives_bytes(const sl_lives *lives) {
    return lives->nodes ? block_bytes(lives->capacity) : 0;
}

void sl_lives_free(sl_lives *lives) {
    sl_mem_free(&sl_sparse_allocator, lives->nodes, sl_lives_bytes(lives));
    *lives = (sl_lives){0};
}

uint64_t sl_deleted_as_of(const sl_graph *graph, size_t word, uint64_t tombstones) {
    uint64_t deleted = 0;
    const size_t first = word * 64, left = graph->n > first ? graph->n - first : 0;
    for (size_t i = 0; i < 64 && i < left; i++) {
        const sl_life *life = &graph->lives.nodes[first + i];
        const uint64_t born = __atomic_load_n(&life->born, __ATOMIC_ACQUIRE),
                       died = __atomic_load_n(&life->died, __ATOMIC_ACQUIRE);
        const int set = tombstones >> i & 1;
        deleted |= (uint64_t)(born > graph->as_of || (died ? died <= graph->as_of : set)) << i;
    }
    return deleted;
}

uint64_t sl_born_after(const sl_graph *graph, size_t word, uint64_t epoch) {
    uint64_t newer = 0;
    for (size_t i = 0; i < 64 && word * 64 + i < graph->n; i++)
        newer |= (uint64_t)(__atomic_load_n(&graph->lives.nodes[word * 64 + i].born, __ATOMIC_ACQUIRE) > epoch) << i;
    return newer;
}

static void store(uint64_t *to, uint64_t value) {
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
}

void sl_life_begin(const sl_graph *graph, size_t node, uint64_t epoch) {
    store(&graph->lives.nodes[node].died, 0);
    store(&graph->lives.nodes[node].born, epoch);
    store(&graph->lives.changed[node / 64], epoch);
}

void sl_life_end(const sl_graph *graph, size_t node, uint64_t epoch) {
    store(&graph->lives.nodes[node].died, epoch);
    store(&graph->lives.changed[node / 64], epoch);
}

void sl_life_unborn(const sl_graph *graph, size_t node, uint64_t epoch) {
    store(&graph->lives.nodes[node].born, SL_UNBORN);
    store(&graph->lives.changed[node / 64], epoch);
}
