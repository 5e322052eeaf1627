#include "hnsw/live.h"

#include "hnsw/insert.h"
#include "hnsw/settings.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static_assert(sizeof(sl_live_facts) <= SL_LIVE_HEAD_ROOM, "sl_live_facts");

/* ---------------------------------------------------------------------------------------------------------------
 * Facts
 * ------------------------------------------------------------------------------------------------------------- */

sl_live_facts sl_live_facts_of(const sl_index *index) {
    return (sl_live_facts){.n = index->n,
                           .linked = index->n,
                           .entry = __atomic_load_n(&index->entry, __ATOMIC_ACQUIRE),
                           .next_id = index->next_id,
                           .upper_count = index->upper.count,
                           .upper_rows = index->upper.rows,
                           .unverified = index->unverified,
                           .ordered = index->ordered,
                           .tuned = index->tuned_count,
                           .quant_error_sum = index->quant_error.sum,
                           .quant_error_max = index->quant_error.max,
                           .quant_error_count = index->quant_error.count,
                           .dead = index->dead_count};
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
        facts->tuned <= SL_MAX_TUNED && facts->linked <= facts->n && facts->dead <= facts->n &&
        has_entry(facts->entry, facts->n, facts->upper_count))
        return SL_OK;
    return sl_fail(
        SL_ECORRUPT,
        "%s: the head page says %llu vectors, %llu slots, %llu rows and entry point %llx, with room for %zu, "
        "%zu and %zu; restore a copy of the file",
        index->store->path, (unsigned long long)facts->n, (unsigned long long)facts->upper_count,
        (unsigned long long)facts->upper_rows, (unsigned long long)facts->entry, room.n, room.slots, room.rows);
}

sl_status sl_live_check_mended(const sl_index *index, const sl_live_facts *facts) {
    if (facts->linked == facts->n && !facts->deleting) return SL_OK;
    return sl_fail(SL_ECORRUPT,
                   "%s: a writer in persistent memory died while it added or deleted; open the file to be written "
                   "once, as `shortlist add` does: that puts it right, and loses nothing that was acknowledged",
                   index->store->path);
}

void sl_live_follow(sl_index *view) {
    sl_live_watch(view->store);
    sl_live_facts facts = sl_live_read(view->facts);
    const sl_upper *upper = &view->upper;
    if (facts.n > view->capacity || facts.upper_count > upper->nodes_capacity ||
        facts.upper_rows > upper->rows_capacity || facts.dead > facts.n ||
        !has_entry(facts.entry, facts.n, facts.upper_count))
        return;
    /* The number of slots and that of nodes are of different syncs. */
    if (facts.upper_count && upper->nodes[facts.upper_count - 1] >= facts.n) return;
    view->n = (size_t)facts.n;
    view->upper.count = (size_t)facts.upper_count;
    view->upper.rows = (size_t)facts.upper_rows;
    view->entry = facts.entry;
    view->next_id = facts.next_id;
    view->dead_count = (size_t)facts.dead;
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

static sl_live_facts *facts_in_file(const sl_index *index) {
    return (sl_live_facts *)(void *)((uint8_t *)place_of(index, SL_SECTION_LIVE) + SL_LIVE_HEAD);
}

sl_status sl_index_sync(sl_index *index) {
    if (!index) return sl_fail(SL_EINVAL, "index is NULL");
    /* Before anything is put: in persistent memory the file has it at once. */
    SL_TRY(sl_index_writable(index));
    if (!index->live)
        return sl_fail(SL_EUNSUPPORTED,
                       "the index is in memory; save it with room, and open that file with writable set");
    sl_live_facts facts = sl_live_facts_of(index);
    if (index->tuned_count) {
        const size_t size = index->tuned_count * sizeof *index->tuned;
        SL_TRY(sl_live_reserve(index->live, place_of(index, SL_SECTION_TUNED), size));
        put(index, place_of(index, SL_SECTION_TUNED), index->tuned, size);
    }
    sl_index_fence(index);
    put(index, facts_in_file(index), &facts, sizeof facts);
    return sl_live_commit(index->live);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Persistent memory, word by word
 * ------------------------------------------------------------------------------------------------------------- */

static void store_word(const sl_index *index, uint64_t *to, uint64_t value) {
    if (__atomic_load_n(to, __ATOMIC_RELAXED) == value) return;
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
    sl_index_touch(index, to, sizeof *to);
}

sl_status sl_live_reserve_nodes(const sl_index *index, size_t more) {
    sl_live *live = index->live;
    size_t first = index->n;
    if (!live) return SL_OK;
    SL_TRY(sl_live_reserve(live, sl_row(index, (uint32_t)first), more * index->codec.rows.pitch));
    if (index->rest_rows)
        SL_TRY(sl_live_reserve(live, sl_rest_row(index, (uint32_t)first), more * index->codec.rest.pitch));
    if (index->coarse_rows)
        SL_TRY(sl_live_reserve(live, sl_walked_row(index, (uint32_t)first), more * index->walked->rows.pitch));
    if (index->projection) SL_TRY(sl_live_reserve(live, index->projection, sl_coarse_projection_size(&index->coarse)));
    if (!index->record.pitch) {
        SL_TRY(sl_live_reserve(live, sl_links(index, first), more * index->m0 * sizeof(uint32_t)));
        SL_TRY(sl_live_reserve(live, sl_id_at(index, first), more * sizeof(uint64_t)));
        SL_TRY(sl_live_reserve(live, sl_sum_at(index, first), more * sizeof *index->sums));
    }
    return index->refine_pitch
               ? sl_live_reserve(live, sl_refine_row(index, (uint32_t)first), more * index->refine_pitch)
               : SL_OK;
}

sl_status sl_live_reserve_upper(const sl_index *index, size_t slots, size_t rows) {
    const sl_upper *upper = &index->upper;
    sl_live *live = index->live;
    if (!live) return SL_OK;
    SL_TRY(sl_live_reserve(live, upper->nodes + upper->count, slots * sizeof(uint32_t)));
    SL_TRY(sl_live_reserve(live, upper->start + upper->count, (slots + 1) * sizeof(uint32_t)));
    return sl_live_reserve(live, upper->links + upper->rows * index->m, rows * index->m * sizeof(uint32_t));
}

/* The number of nodes last: they count from then on, and all that belongs to them is there. */
void sl_live_publish(sl_index *index) {
    if (!sl_index_is_direct(index)) return;
    sl_live_facts *facts = facts_in_file(index);
    sl_index_fence(index);
    store_word(index, &facts->next_id, index->next_id);
    store_word(index, &facts->upper_rows, index->upper.rows);
    store_word(index, &facts->upper_count, index->upper.count);
    sl_index_fence(index);
    store_word(index, &facts->n, index->n);
    sl_index_fence(index);
}

void sl_live_linked(sl_index *index, size_t count) {
    if (!sl_index_is_direct(index)) return;
    sl_index_fence(index);
    store_word(index, &facts_in_file(index)->linked, count);
    sl_index_fence(index);
}

void sl_live_entry(sl_index *index) {
    if (!sl_index_is_direct(index)) return;
    sl_index_fence(index);
    store_word(index, &facts_in_file(index)->entry, __atomic_load_n(&index->entry, __ATOMIC_ACQUIRE));
    sl_index_fence(index);
}

void sl_live_deleting(sl_index *index) {
    if (!sl_index_is_direct(index)) return;
    store_word(index, &facts_in_file(index)->deleting, 1);
    sl_index_fence(index);
}

void sl_live_deleted(sl_index *index) {
    if (!sl_index_is_direct(index)) return;
    sl_live_facts *facts = facts_in_file(index);
    sl_index_fence(index);
    store_word(index, &facts->dead, index->dead_count);
    sl_index_fence(index);
    store_word(index, &facts->deleting, 0);
    sl_index_fence(index);
}

static int is_among(const uint32_t *ids, size_t count, uint32_t id) {
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id) return 1;
    return 0;
}

static void store_link(const sl_index *index, uint32_t *link, uint32_t id) {
    sl_link_store(link, id);
    sl_index_touch(index, link, sizeof *link);
}

/* Closes the gap at `at` of a list whose links end before *end: its last one goes there before it leaves its place. */
static void close_gap(const sl_index *index, uint32_t *links, size_t at, size_t *end) {
    --*end;
    if (at != *end) {
        store_link(index, links + at, sl_link_load(links + *end));
        sl_index_fence(index);
    }
    store_link(index, links + *end, SL_NONE);
    sl_index_fence(index);
}

static size_t length_of(const uint32_t *links, size_t degree) {
    size_t length = 0;
    while (length < degree && sl_link_load(links + length) != SL_NONE)
        length++;
    return length;
}

void sl_links_become(const sl_index *index, uint32_t *links, size_t degree, const uint32_t *ids, size_t count) {
    size_t end = length_of(links, degree), fresh = 0;
    while (fresh < count && is_among(links, end, ids[fresh]))
        fresh++;
    for (size_t at = 0; at < end;) {
        if (is_among(ids, count, sl_link_load(links + at))) {
            at++;
        } else if (fresh < count) {
            store_link(index, links + at++, ids[fresh]);
            sl_index_fence(index);
            fresh = count;
        } else {
            close_gap(index, links, at, &end);
        }
    }
}

void sl_links_tidy(const sl_index *index, uint32_t *links, size_t degree) {
    size_t end = length_of(links, degree);
    for (size_t at = 0; at < end;)
        if (is_among(links, at, sl_link_load(links + at)))
            close_gap(index, links, at, &end);
        else
            at++;
}

/* The lists that the node was to be put into when the crash came. */
static void tidy_round(const sl_index *index, uint32_t node) {
    uint32_t slot, top = sl_level_and_slot(index, node, &slot);
    for (uint32_t level = 0; level <= top && level <= SL_MAX_LEVEL; level++) {
        sl_layer layer = sl_layer_at(index, level);
        const uint32_t *own = sl_layer_links(&layer, level ? slot : node);
        uint32_t known[2 * SL_MAX_M];
        size_t count = own ? sl_links_known(&layer, own, known) : 0;
        for (size_t i = 0; i < count; i++) {
            uint32_t *links = sl_layer_links(&layer, known[i]);
            if (links) sl_links_tidy(index, links, layer.degree);
        }
    }
}

static sl_status relink(sl_index *index, size_t linked) {
    for (size_t node = linked; node < index->n; node++)
        tidy_round(index, (uint32_t)node);
    SL_TRY(sl_build_relink(index, linked));
    index->unverified += index->n - linked;
    sl_live_linked(index, index->n);
    return SL_OK;
}

sl_status sl_live_mend(sl_index *index) {
    sl_live_facts facts = sl_live_read(facts_in_file(index));
    const sl_upper *upper = &index->upper;
    sl_upper_truncate(index, index->n);
    if (facts.deleting) {
        index->dead_count = sl_dead_marks(index);
        sl_live_deleted(index);
    }
    int whole = facts.linked == index->n && !facts.deleting;
    if (facts.linked < index->n) SL_TRY(relink(index, (size_t)facts.linked));
    return whole && upper->count == facts.upper_count && upper->rows == facts.upper_rows ? SL_OK : sl_index_sync(index);
}
