#include "recommend/catalog.h"

#include <stdlib.h>
#include <string.h>

/* Ids index an array if all of them are below DENSE_LEAST, or below DENSE_TIMES their number. Such an array takes no
 * more memory than entries would. */
#define DENSE_TIMES 4u
#define DENSE_LEAST 1024u

static void table_free(const sl_allocator *allocator, sl_id_table *table) {
    if (!table) return;
    SL_FREE_ARRAY(allocator, table->refs, table->size);
    SL_FREE_ARRAY(allocator, table->entries, table->size);
    SL_FREE(allocator, table);
}

static void list_free(const sl_allocator *allocator, sl_part_list *list) {
    if (!list) return;
    SL_FREE_ARRAY(allocator, list->parts, list->capacity);
    SL_FREE(allocator, list);
}

/* Makes an empty table. Ids and rows with all bits set mark empty places. */
static sl_status table_make(const sl_allocator *allocator, size_t size, int dense, sl_id_table **out) {
    void *block, *array = NULL;
    size_t bytes;
    if (!sl_mul(size, dense ? sizeof(sl_row_ref) : sizeof(sl_id_entry), &bytes))
        return sl_fail(SL_ENOMEM, "a table of %zu ids does not fit the address space", size);
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_id_table), &block));
    sl_id_table *table = block;
    sl_status status = sl_mem_alloc(allocator, bytes, &array);
    if (status != SL_OK) {
        sl_mem_free(allocator, block, sizeof *table);
        return status;
    }
    memset(array, 0xff, bytes);
    table->size = size;
    table->dense = dense;
    table->seed = sl_id_seed();
    table->refs = dense ? array : NULL;
    table->entries = dense ? NULL : array;
    *out = table;
    return SL_OK;
}

static sl_status list_make(const sl_allocator *allocator, size_t capacity, sl_part_list **out) {
    void *block, *parts;
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_part_list), &block));
    sl_part_list *list = block;
    sl_status status = sl_mem_alloc(allocator, capacity * sizeof *list->parts, &parts);
    if (status != SL_OK) {
        sl_mem_free(allocator, block, sizeof *list);
        return status;
    }
    list->capacity = capacity;
    list->parts = parts;
    *out = list;
    return SL_OK;
}

sl_status sl_catalog_init(sl_catalog *catalog, const sl_allocator *allocator) {
    *catalog = (sl_catalog){.allocator = *allocator};
    SL_TRY(table_make(allocator, 64, 0, &catalog->table));
    sl_status status = list_make(allocator, 4, &catalog->list);
    if (status == SL_OK) return SL_OK;
    sl_catalog_free(catalog);
    return status;
}

void sl_catalog_free(sl_catalog *catalog) {
    for (sl_id_table *table = catalog->table, *older; table; table = older) {
        older = table->older;
        table_free(&catalog->allocator, table);
    }
    for (sl_part_list *list = catalog->list, *older; list; list = older) {
        older = list->older;
        list_free(&catalog->allocator, list);
    }
    catalog->table = NULL;
    catalog->list = NULL;
}

/* Returns what the id had before. */
static sl_row_ref table_put(sl_id_table *table, uint64_t id, sl_row_ref ref) {
    if (table->dense) {
        sl_row_ref before = __atomic_load_n(&table->refs[id], __ATOMIC_RELAXED);
        __atomic_store_n(&table->refs[id], ref, __ATOMIC_RELEASE);
        return before;
    }
    SL_PROBE(at, sl_id_hash(table->seed, id), table->size) {
        sl_id_entry *entry = &table->entries[at];
        uint64_t there = __atomic_load_n(&entry->id, __ATOMIC_RELAXED);
        if (there != SL_NO_ID && there != id) continue;
        sl_row_ref before = __atomic_load_n(&entry->ref, __ATOMIC_RELAXED);
        __atomic_store_n(&entry->ref, ref, __ATOMIC_RELEASE);
        if (there == SL_NO_ID) __atomic_store_n(&entry->id, id, __ATOMIC_RELEASE);
        return before;
    }
}

/* The entry at a place; its id is SL_NO_ID, or its ref SL_NO_REF, if the place is empty. */
static sl_id_entry entry_at(const sl_id_table *table, size_t at) {
    return table->dense ? (sl_id_entry){at, table->refs[at]} : table->entries[at];
}

static void table_copy(const sl_id_table *from, sl_id_table *to) {
    for (size_t at = 0; at < from->size; at++) {
        const sl_id_entry entry = entry_at(from, at);
        if (entry.id != SL_NO_ID && entry.ref != SL_NO_REF) (void)table_put(to, entry.id, entry.ref);
    }
}

/* Returns whether the table has room for `count` ids up to `largest`. At most half of the entries are used, so searches
 * stay short. */
static int table_has_room(const sl_id_table *table, size_t count, uint64_t largest) {
    return table->dense ? largest < table->size : count <= table->size / 2;
}

static sl_status table_grow(sl_catalog *catalog, size_t count, uint64_t largest) {
    sl_id_table *table = catalog->table, *larger = NULL;
    if (table_has_room(table, count, largest)) return SL_OK;
    int dense = largest < DENSE_LEAST || largest / DENSE_TIMES < count;
    size_t size = 64, least = table->size * (table->dense && !dense ? 1 : 2);
    if (least < size) least = size;
    if (dense)
        size = largest >= least ? (size_t)largest + 1 : least;
    else
        while (size < 2 * count || size < least)
            size *= 2;
    SL_TRY(table_make(&catalog->allocator, size, dense, &larger));
    table_copy(table, larger);
    larger->older = table;
    __atomic_store_n(&catalog->table, larger, __ATOMIC_RELEASE);
    return SL_OK;
}

static sl_status list_grow(sl_catalog *catalog, size_t parts) {
    sl_part_list *list = catalog->list, *larger = NULL;
    size_t need;
    if (!sl_add(catalog->parts, parts, &need) || need > UINT32_MAX)
        return sl_fail(SL_ELIMIT, "%zu parts of rows; save the table and open it again", catalog->parts);
    if (need <= list->capacity) return SL_OK;
    SL_TRY(list_make(&catalog->allocator, need > 2 * list->capacity ? need : 2 * list->capacity, &larger));
    memcpy(larger->parts, list->parts, catalog->parts * sizeof *list->parts);
    larger->older = list;
    __atomic_store_n(&catalog->list, larger, __ATOMIC_RELEASE);
    return SL_OK;
}

sl_status sl_catalog_reserve(sl_catalog *catalog, const uint64_t *ids, size_t n, size_t parts) {
    uint64_t largest = catalog->largest;
    size_t fresh = 0, count;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] > largest) largest = ids[i];
        fresh += sl_catalog_find(catalog, ids[i]) == SL_NO_REF;
    }
    if (!sl_add(catalog->ids + catalog->tombstones, fresh, &count) || count > SIZE_MAX / 4)
        return sl_fail(SL_ENOMEM, "%zu ids do not fit the address space", fresh);
    SL_TRY(table_grow(catalog, count, largest));
    return list_grow(catalog, parts);
}

size_t sl_catalog_add(sl_catalog *catalog, void *part) {
    size_t number = catalog->parts;
    __atomic_store_n(&catalog->list->parts[number], part, __ATOMIC_RELEASE);
    __atomic_store_n(&catalog->parts, number + 1, __ATOMIC_RELEASE);
    return number;
}

/* Puts a row or a tombstone. Returns what the id had before. */
static sl_row_ref put(sl_catalog *catalog, uint64_t id, sl_row_ref ref) {
    const sl_row_ref before = table_put(catalog->table, id, ref);
    const size_t ids = catalog->ids + (size_t)sl_ref_is_row(ref) - (size_t)sl_ref_is_row(before);
    const size_t tombstones =
        catalog->tombstones + (size_t)sl_ref_is_tombstone(ref) - (size_t)sl_ref_is_tombstone(before);
    __atomic_store_n(&catalog->ids, ids, __ATOMIC_RELAXED);
    __atomic_store_n(&catalog->tombstones, tombstones, __ATOMIC_RELAXED);
    if (ids > catalog->most) catalog->most = ids;
    if (id > catalog->largest) catalog->largest = id;
    return before;
}

int sl_catalog_put(sl_catalog *catalog, uint64_t id, sl_row_ref ref) {
    return !sl_ref_is_row(put(catalog, id, ref));
}

/* ---------------------------------------------------------------------------------------------------------------
 * Tombstones
 * ------------------------------------------------------------------------------------------------------------- */

int sl_catalog_delete(sl_catalog *catalog, uint64_t id) {
    const sl_row_ref tombstone = sl_ref_of(SL_NO_PART, catalog->deletions);
    /* After 2^32 - 2 deletions without a copy of the catalog, later ones count as one. */
    if (catalog->deletions < sl_ref_row(SL_NO_REF) - 1) catalog->deletions++;
    return sl_ref_is_row(put(catalog, id, tombstone));
}

static size_t tombstones_bound(const sl_catalog *catalog) {
    return catalog->most > SL_TOMBSTONES_LEAST ? catalog->most : SL_TOMBSTONES_LEAST;
}

static int compare_tombstones(const void *a, const void *b) {
    const sl_row_ref x = ((const sl_id_entry *)a)->ref, y = ((const sl_id_entry *)b)->ref;
    return (x > y) - (x < y);
}

sl_status sl_catalog_deleted(const sl_catalog *catalog, sl_deleted_ids *out) {
    const sl_id_table *table = catalog->table;
    const size_t room = catalog->tombstones;
    void *entries_block, *ids_block;
    *out = (sl_deleted_ids){.n = 0};
    if (!room) return SL_OK;
    SL_TRY(sl_mem_alloc(&catalog->allocator, room * sizeof(sl_id_entry), &entries_block));
    sl_id_entry *entries = entries_block;
    size_t n = 0;
    for (size_t at = 0; at < table->size; at++) {
        const sl_id_entry entry = entry_at(table, at);
        if (entry.id != SL_NO_ID && sl_ref_is_tombstone(entry.ref)) entries[n++] = entry;
    }
    qsort(entries, n, sizeof *entries, compare_tombstones);
    const size_t bound = tombstones_bound(catalog), kept = n < bound ? n : bound;
    sl_status status = sl_mem_alloc(&catalog->allocator, kept * sizeof *out->ids, &ids_block);
    if (status == SL_OK) {
        *out = (sl_deleted_ids){.ids = ids_block, .n = kept, .room = kept};
        for (size_t i = 0; i < kept; i++)
            out->ids[i] = entries[n - kept + i].id;
    }
    SL_FREE_ARRAY(&catalog->allocator, entries, room);
    return status;
}

void sl_deleted_ids_free(const sl_allocator *allocator, sl_deleted_ids *deleted) {
    SL_FREE_ARRAY(allocator, deleted->ids, deleted->room);
    *deleted = (sl_deleted_ids){.n = 0};
}

static sl_status copy_newest(sl_catalog *catalog, const sl_catalog *from) {
    sl_deleted_ids deleted;
    SL_TRY(sl_catalog_deleted(from, &deleted));
    sl_status status = sl_catalog_reserve(catalog, deleted.ids, deleted.n, 0);
    for (size_t i = 0; i < deleted.n && status == SL_OK; i++)
        (void)sl_catalog_delete(catalog, deleted.ids[i]);
    sl_deleted_ids_free(&from->allocator, &deleted);
    return status;
}

sl_status sl_catalog_copy_tombstones(sl_catalog *catalog, const sl_catalog *from) {
    catalog->most = from->most;
    if (!from->tombstones) return SL_OK;
    if (from->tombstones > 2 * tombstones_bound(from) || from->deletions > UINT32_MAX / 2)
        return copy_newest(catalog, from);
    /* Sorting is for the few copies that forget some. */
    SL_TRY(table_grow(catalog, from->ids + from->tombstones, from->largest));
    catalog->deletions = from->deletions;
    for (size_t at = 0; at < from->table->size; at++) {
        const sl_id_entry entry = entry_at(from->table, at);
        if (entry.id != SL_NO_ID && sl_ref_is_tombstone(entry.ref)) (void)put(catalog, entry.id, entry.ref);
    }
    return SL_OK;
}

sl_status sl_ids_find_repeated(const sl_allocator *allocator, const uint64_t *ids, size_t n, size_t *at) {
    sl_catalog seen;
    SL_TRY(sl_catalog_init(&seen, allocator));
    sl_status status = sl_catalog_reserve(&seen, ids, n, 0);
    *at = 0;
    while (status == SL_OK && *at < n && sl_catalog_put(&seen, ids[*at], *at))
        ++*at;
    sl_catalog_free(&seen);
    return status;
}
