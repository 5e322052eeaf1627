#include "hnsw/graph/lives.h"

#include <string.h>

/* Bytes that are copied at a time, unless all of them are zeros. */
enum { PAGE = 4096 };

static size_t words_of(size_t capacity) {
    return capacity / 64 + 1;
}

/* One block holds both arrays: lives first, then `changed`. */
size_t sl_lives_room(size_t capacity) {
    return capacity * sizeof(sl_life) + words_of(capacity) * sizeof(uint64_t);
}

sl_lives sl_lives_in(void *block, size_t capacity) {
    sl_lives lives = {.nodes = block, .capacity = capacity, .is_filed = 1};
    lives.changed = (uint64_t *)(void *)(lives.nodes + capacity);
    return lives;
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
    SL_TRY(sl_mem_alloc_raw(&sl_sparse_allocator, sl_lives_room(capacity), &block));
    *out = sl_lives_in(block, capacity);
    out->is_filed = 0;
    if (!from->nodes) return SL_OK;
    const size_t both = from->capacity < capacity ? from->capacity : capacity;
    copy_touched(out->nodes, from->nodes, both * sizeof *from->nodes);
    copy_touched(out->changed, from->changed, words_of(both) * sizeof *from->changed);
    return SL_OK;
}

size_t sl_lives_bytes(const sl_lives *lives) {
    return lives->nodes ? sl_lives_room(lives->capacity) : 0;
}

void sl_lives_free(sl_lives *lives) {
    if (!lives->is_filed) sl_mem_free(&sl_sparse_allocator, lives->nodes, sl_lives_bytes(lives));
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

static void touch_life(const sl_index *index, size_t node) {
    const sl_lives *lives = &index->file_lives;
    sl_index_touch(index, &lives->nodes[node], sizeof *lives->nodes);
    sl_index_touch(index, &lives->changed[node / 64], sizeof *lives->changed);
}

/* A life in the file, that of a change before the next commit. */
static void set_in_file(const sl_index *index, size_t node, uint64_t born, uint64_t died) {
    const sl_lives *lives = &index->file_lives;
    lives->nodes[node] = (sl_life){born, died};
    lives->changed[node / 64] = index->commit + 1;
    touch_life(index, node);
}

void sl_life_begin(sl_index *index, size_t node, uint64_t epoch) {
    const sl_lives *lives = &index->graph.lives, *file = &index->file_lives;
    const uint64_t commit = index->commit + 1;
    store(&lives->nodes[node].died, 0);
    store(&lives->nodes[node].born, epoch);
    store(&lives->changed[node / 64], epoch);
    /* The node was deleted after the last commit, so no reader saw it deleted. It keeps its birth. */
    if (file->nodes) set_in_file(index, node, file->nodes[node].died == commit ? file->nodes[node].born : commit, 0);
}

void sl_life_end(sl_index *index, size_t node, uint64_t epoch) {
    const sl_lives *lives = &index->graph.lives, *file = &index->file_lives;
    store(&lives->nodes[node].died, epoch);
    store(&lives->changed[node / 64], epoch);
    if (file->nodes) set_in_file(index, node, file->nodes[node].born, index->commit + 1);
}

void sl_life_unborn(sl_index *index, size_t node, uint64_t epoch) {
    const sl_lives *lives = &index->graph.lives, *file = &index->file_lives;
    store(&lives->nodes[node].born, SL_UNBORN);
    store(&lives->changed[node / 64], epoch);
    if (file->nodes) set_in_file(index, node, SL_UNBORN, file->nodes[node].died);
}

void sl_lives_clear(sl_index *index, size_t first, size_t n) {
    const sl_lives *both[] = {&index->graph.lives, &index->file_lives};
    for (size_t i = 0; i < 2; i++)
        for (size_t node = first; both[i]->nodes && node < first + n; node++) {
            if (!both[i]->nodes[node].born && !both[i]->nodes[node].died) continue;
            both[i]->nodes[node] = (sl_life){0};
            if (both[i] == &index->file_lives) touch_life(index, node);
        }
}
