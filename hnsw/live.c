#include "hnsw/live.h"

#include "base/params.h"
#include "hnsw/reach.h"
#include "hnsw/settings.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static_assert(sizeof(sl_live_facts) <= SL_LIVE_PAGE, "sl_live_facts");

/* ---------------------------------------------------------------------------------------------------------------
 * Room
 * ------------------------------------------------------------------------------------------------------------- */

/* A node stands on level 1 with probability 1/m and is on 1/(m - 1) upper levels in the mean; ten standard deviations
 * more are never met. */
sl_extent sl_live_room(const sl_index *index, size_t n) {
    double count = (double)n, p = 1 / (double)index->m, mean = p / (1 - p);
    double slots = count * p + 10 * sqrt(count * p * (1 - p)) + 64;
    double rows = count * mean + 10 * sqrt(count * p) / (1 - p) + SL_MAX_LEVEL;
    size_t most = SL_NONE - 1;
    sl_extent room = {n, slots < count ? (size_t)slots : n, rows < (double)most ? (size_t)rows : most};
    if (room.slots < index->upper.count) room.slots = index->upper.count;
    if (room.rows < index->upper.rows) room.rows = index->upper.rows;
    return room;
}

static uint64_t room_of(const sl_index *index, sl_section_kind kind, sl_extent room) {
    const uint64_t word = sizeof(uint32_t);
    switch (kind) {
    case SL_SECTION_CODES:
        return room.n * index->codec.rows.pitch;
    case SL_SECTION_REST:
        return room.n * index->codec.rest.pitch;
    case SL_SECTION_COARSE:
        return room.n * index->coarse.codec.rows.pitch;
    case SL_SECTION_PROJECTION:
        return index->coarse.codec.rows.pitch ? sl_coarse_projection_size(&index->coarse) : 0;
    case SL_SECTION_LINKS:
        return room.n * index->m0 * word;
    case SL_SECTION_IDS:
        return room.n * sizeof(uint64_t);
    case SL_SECTION_REFINE:
        return room.n * index->refine_pitch;
    case SL_SECTION_UPPER_NODES:
        return room.slots * word;
    case SL_SECTION_UPPER_START:
        return (room.slots + 1) * word;
    case SL_SECTION_UPPER_LINKS:
        return room.rows * index->m * word;
    case SL_SECTION_TUNED:
        return SL_MAX_TUNED * sizeof(sl_tuned_record);
    case SL_SECTION_LIVE:
        return SL_LIVE_SIZE;
    case SL_SECTION_PARTITION_STARTS:
    case SL_SECTION_PARTITION_ROWS:
        return 0;
    }
    return 0;
}

/* The section of a kind among those described, made where there is none. */
static sl_section_source *section_for(sl_section_source *sections, size_t *count, sl_section_kind kind) {
    for (size_t i = 0; i < *count; i++)
        if (sections[i].kind == (uint32_t)kind) return &sections[i];
    sections[*count] = (sl_section_source){.kind = kind};
    return &sections[(*count)++];
}

size_t sl_live_describe(const sl_index *index, sl_extent room, const uint64_t *ids, const uint8_t *live,
                        sl_file_header *header, sl_section_source *sections, size_t count) {
    /* The last is SL_SECTION_LIVE, so that the file ends with a whole line. */
    const sl_section_kind kinds[] = {SL_SECTION_CODES,       SL_SECTION_REST,        SL_SECTION_COARSE,
                                     SL_SECTION_PROJECTION,  SL_SECTION_LINKS,       SL_SECTION_IDS,
                                     SL_SECTION_REFINE,      SL_SECTION_UPPER_NODES, SL_SECTION_UPPER_START,
                                     SL_SECTION_UPPER_LINKS, SL_SECTION_TUNED,       SL_SECTION_LIVE};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        uint64_t bytes = room_of(index, kinds[i], room);
        if (!bytes) continue;
        sl_section_source *section = section_for(sections, &count, kinds[i]);
        section->flags = SL_SECTION_REQUIRED | SL_SECTION_CHANGING;
        section->room = bytes;
        if (kinds[i] == SL_SECTION_LIVE) section->data = live, section->size = SL_LIVE_SIZE;
        if (kinds[i] != SL_SECTION_IDS) continue;
        section->data = index->id_width == sizeof *ids ? index->ids : ids;
        section->size = index->n * sizeof *ids;
    }
    header->id_width = sizeof *ids;
    header->room = room.n;
    header->upper_room = room.slots;
    header->rows_room = room.rows;
    return count;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Facts
 * ------------------------------------------------------------------------------------------------------------- */

sl_live_facts sl_live_facts_of(const sl_index *index) {
    return (sl_live_facts){.n = index->n,
                           .entry = __atomic_load_n(&index->entry, __ATOMIC_ACQUIRE),
                           .next_id = index->next_id,
                           .upper_count = index->upper.count,
                           .upper_rows = index->upper.rows,
                           .unverified = index->unverified,
                           .ordered = index->ordered,
                           .tuned = index->tuned_count,
                           .quant_error_sum = index->quant_error.sum,
                           .quant_error_max = index->quant_error.max,
                           .quant_error_count = index->quant_error.count};
}

sl_live_facts sl_live_read(const sl_live_facts *facts) {
    sl_live_facts now;
    const uint64_t *from = (const uint64_t *)(const void *)facts;
    uint64_t words[sizeof now / sizeof(uint64_t)];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        words[i] = __atomic_load_n(from + i, __ATOMIC_ACQUIRE);
    memcpy(&now, words, sizeof now);
    return now;
}

/* Whether the entry point is in an index of these sizes: its slot and its level, or the node itself. */
static int has_entry(uint64_t entry, uint64_t n, uint64_t slots) {
    uint64_t level = entry >> 32, low = entry & UINT32_MAX;
    return n == 0 || (level <= SL_MAX_LEVEL && low < (level ? slots : n));
}

sl_status sl_live_check(const sl_index *index, const sl_live_facts *facts, sl_extent room) {
    if (facts->n <= room.n && facts->upper_count <= room.slots && facts->upper_rows <= room.rows &&
        facts->tuned <= SL_MAX_TUNED && has_entry(facts->entry, facts->n, facts->upper_count))
        return SL_OK;
    return sl_fail(SL_ECORRUPT,
                   "%s: the head page says %llu vectors, %llu slots, %llu rows and entry point %llx, with room for %zu, "
                   "%zu and %zu; take a copy of the file",
                   index->store->path, (unsigned long long)facts->n, (unsigned long long)facts->upper_count,
                   (unsigned long long)facts->upper_rows, (unsigned long long)facts->entry, room.n, room.slots,
                   room.rows);
}

void sl_live_follow(sl_index *view) {
    sl_live_facts facts = sl_live_read(view->facts);
    const sl_upper *upper = &view->upper;
    if (facts.n > view->capacity || facts.upper_count > upper->nodes_capacity ||
        facts.upper_rows > upper->rows_capacity || !has_entry(facts.entry, facts.n, facts.upper_count))
        return;
    view->n = (size_t)facts.n;
    view->upper.count = (size_t)facts.upper_count;
    view->upper.rows = (size_t)facts.upper_rows;
    view->entry = facts.entry;
    view->next_id = facts.next_id;
}

const sl_index *sl_live_seen(const sl_index *index, sl_index *copy) {
    if (!index->facts) return index;
    *copy = (sl_index){.id_map = {.slots = NULL}};
    memcpy(copy, index, offsetof(sl_index, id_map));
    copy->walked = index->walked == &index->codec ? &copy->codec : &copy->coarse.codec;
    sl_live_follow(copy);
    return copy;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Making it durable
 * ------------------------------------------------------------------------------------------------------------- */

/* A section's place in the mapping. */
static void *place_of(const sl_index *index, uint32_t kind) {
    const sl_file_section *section = sl_store_section(index->store, kind);
    return section ? index->live->base + section->offset : NULL;
}

static void put(sl_index *index, void *to, const void *from, size_t size) {
    if (memcmp(to, from, size) == 0) return;
    memcpy(to, from, size);
    sl_index_touch(index, to, size);
}

sl_status sl_index_sync(sl_index *index) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    if (!index->live) {
        SL_TRY(sl_index_writable(index));
        return sl_fail(SL_EUNSUPPORTED, "the index is in memory; save it with room, and open that file with writable set");
    }
    sl_live_facts facts = sl_live_facts_of(index);
    if (index->tuned_count)
        put(index, place_of(index, SL_SECTION_TUNED), index->tuned, index->tuned_count * sizeof *index->tuned);
    put(index, (uint8_t *)place_of(index, SL_SECTION_LIVE) + SL_LIVE_HEAD, &facts, sizeof facts);
    return sl_live_commit(index->live);
}

sl_status sl_live_finish(sl_index *index) {
    SL_TRY(sl_index_sync(index));
    return sl_live_checkpoint(index->live);
}
