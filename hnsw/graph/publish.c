#include "hnsw/graph/publish.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "hnsw/graph/arrays.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(sl_published) <= SL_LIVE_HEAD_ROOM, "sl_published");

sl_published sl_published_of(const sl_index *index, const sl_graph *graph) {
    return (sl_published){.n = graph->n,
                          .linked = graph->n,
                          .entry = __atomic_load_n(&graph->entry, __ATOMIC_ACQUIRE),
                          .next_id = graph->next_id,
                          .upper_count = graph->upper.count,
                          .upper_rows = graph->upper.rows,
                          .unverified = index->unverified + (size_t)index->swept,
                          .ordered = index->ordered,
                          .tuned = graph->tuned_count,
                          .quant_error_sum = graph->quant_error.sum,
                          .quant_error_max = graph->quant_error.max,
                          .quant_error_count = graph->quant_error.count,
                          .dead = graph->deleted_count};
}

sl_published sl_published_read(const sl_published *facts) {
    sl_published now;
    const uint64_t *from = (const uint64_t *)(const void *)facts;
    uint64_t words[sizeof now / sizeof(uint64_t)];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        words[i] = __atomic_load_n(from + i, __ATOMIC_ACQUIRE);
    memcpy(&now, words, sizeof now);
    return now;
}

static uint64_t seal_of(const sl_published *facts) {
    return (uint64_t)1 << 32 | sl_crc32c(0, facts, offsetof(sl_published, seal));
}

void sl_published_seal(sl_published *facts, uint64_t commit) {
    facts->commit = commit;
    facts->seal = seal_of(facts);
}

/* Looks, and the pause after each, in ns. A commit writes the facts in one call to the system. */
enum { MOST_LOOKS = 100, PAUSE = 100000 };

int sl_published_read_whole(const sl_published *facts, sl_published *out) {
    for (size_t i = 0; i < MOST_LOOKS; i++) {
        *out = sl_published_read(facts);
        if (!out->seal || out->seal == seal_of(out)) return 1;
        sl_pause_ns(PAUSE);
    }
    return 0;
}

sl_status sl_published_check(const sl_index *index, const sl_published *facts, sl_extent room) {
    if (facts->n <= room.n && facts->upper_count <= room.slots && facts->upper_rows <= room.rows &&
        facts->tuned <= SL_MAX_TUNED && facts->linked <= facts->n && facts->dead <= facts->n &&
        facts->free <= facts->dead && facts->commit < SL_UNBORN - 1 &&
        sl_published_has_entry(facts->entry, facts->n, facts->upper_count))
        return SL_OK;
    return sl_fail(
        SL_ECORRUPT,
        "%s: the head page says %llu vectors, %llu slots, %llu rows and entry point %llx, with room for %zu, "
        "%zu and %zu; restore a copy of the file",
        index->store->path, (unsigned long long)facts->n, (unsigned long long)facts->upper_count,
        (unsigned long long)facts->upper_rows, (unsigned long long)facts->entry, room.n, room.slots, room.rows);
}

sl_status sl_published_check_mended(const sl_index *index, const sl_published *facts) {
    if (facts->linked == facts->n && !facts->deleting) return SL_OK;
    return sl_fail(SL_ECORRUPT,
                   "%s: a writer in persistent memory died while it added or deleted; open the file to be written "
                   "once, as `shortlist add` does: that puts it right, and loses nothing that was acknowledged",
                   index->store->path);
}

void *sl_section_in_file(const sl_index *index, uint32_t kind) {
    const sl_file_section *section = sl_store_section(index->store, kind);
    return section ? index->writer->base + section->offset : NULL;
}

sl_published *sl_published_in_file(const sl_index *index) {
    return (sl_published *)(void *)((uint8_t *)sl_section_in_file(index, SL_SECTION_LIVE) + SL_LIVE_HEAD);
}

static void store_word(const sl_index *index, uint64_t *to, uint64_t value) {
    if (__atomic_load_n(to, __ATOMIC_RELAXED) == value) return;
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
    sl_index_touch(index, to, sizeof *to);
}

sl_status sl_publish_reserve_nodes(const sl_index *index, size_t more) {
    sl_writable *writer = index->writer;
    if (!writer) return SL_OK;
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++) {
        const unsigned flags = sl_array_lines[kind].flags;
        if (flags & SL_ARRAY_BITS) continue;
        const sl_span rows = flags & SL_ARRAY_SINGLE ? sl_array_span(&index->graph, kind, 0, 1)
                                                     : sl_array_span(&index->graph, kind, index->graph.n, more);
        if (rows.size) SL_TRY(sl_writable_reserve(writer, rows.at, rows.size));
    }
    return SL_OK;
}

sl_status sl_publish_reserve_upper(const sl_index *index, size_t slots, size_t rows) {
    const sl_upper *upper = &index->graph.upper;
    sl_writable *writer = index->writer;
    if (!writer) return SL_OK;
    SL_TRY(sl_writable_reserve(writer, upper->nodes + upper->count, slots * sizeof(uint32_t)));
    SL_TRY(sl_writable_reserve(writer, upper->start + upper->count, (slots + 1) * sizeof(uint32_t)));
    return sl_writable_reserve(writer, upper->links + upper->rows * index->graph.m,
                               rows * index->graph.m * sizeof(uint32_t));
}

void sl_publish_unsealed(sl_index *index) {
    if (!sl_index_is_direct(index)) return;
    store_word(index, &sl_published_in_file(index)->seal, 0);
    sl_index_fence(index);
}

/* The number of nodes is stored last: from then on the nodes count, so all their parts must be there. */
void sl_publish_nodes(sl_index *index) {
    if (!sl_index_is_direct(index)) return;
    sl_published *facts = sl_published_in_file(index);
    sl_index_fence(index);
    store_word(index, &facts->next_id, index->graph.next_id);
    store_word(index, &facts->upper_rows, index->graph.upper.rows);
    store_word(index, &facts->upper_count, index->graph.upper.count);
    sl_index_fence(index);
    store_word(index, &facts->n, index->graph.n);
    sl_index_fence(index);
}

void sl_publish_linked(sl_index *index, size_t count) {
    if (!sl_index_is_direct(index)) return;
    sl_published *facts = sl_published_in_file(index);
    store_word(index, &facts->unverified, index->unverified);
    sl_index_fence(index);
    store_word(index, &facts->linked, count);
    sl_index_fence(index);
}

void sl_publish_entry(sl_index *index) {
    if (!sl_index_is_direct(index)) return;
    sl_index_fence(index);
    store_word(index, &sl_published_in_file(index)->entry, __atomic_load_n(&index->graph.entry, __ATOMIC_ACQUIRE));
    sl_index_fence(index);
}

void sl_publish_deleting(sl_index *index) {
    if (!sl_index_is_direct(index)) return;
    store_word(index, &sl_published_in_file(index)->deleting, 1);
    sl_index_fence(index);
}

void sl_publish_deleted(sl_index *index) {
    if (!sl_index_is_direct(index)) return;
    sl_published *facts = sl_published_in_file(index);
    sl_index_fence(index);
    store_word(index, &facts->dead, index->graph.deleted_count);
    sl_index_fence(index);
    store_word(index, &facts->deleting, 0);
    sl_index_fence(index);
}
