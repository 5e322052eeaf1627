/* A map from an id to a row of a part. Parts don't move, and new rows come in new parts. A deleted id has a tombstone.
 * Threads: one thread changes a catalog. Meanwhile any number of threads look ids up, without waiting. They see an id's
 * row as it was before a change or after it. */
#ifndef SL_RECOMMEND_CATALOG_H
#define SL_RECOMMEND_CATALOG_H

#include "base/id_hash.h"
#include "base/memory.h"
#include "base/prefetch.h"
#include "base/probe.h"

/* A row: the number of its part in the upper 32 bits, its number in the part in the lower. */
typedef uint64_t sl_row_ref;
#define SL_NO_REF        UINT64_MAX
#define SL_MAX_PART_ROWS 0x7fffffffu

static inline sl_row_ref sl_ref_of(size_t part, size_t row) {
    return (uint64_t)part << 32 | (uint64_t)row;
}
static inline uint32_t sl_ref_part(sl_row_ref ref) {
    return (uint32_t)(ref >> 32);
}
static inline uint32_t sl_ref_row(sl_row_ref ref) {
    return (uint32_t)ref;
}
/* No part has this number. SL_NO_REF has it, and so do tombstones, whose rows number the deletions. */
#define SL_NO_PART 0xffffffffu
static inline int sl_ref_is_row(sl_row_ref ref) {
    return sl_ref_part(ref) != SL_NO_PART;
}
static inline int sl_ref_is_tombstone(sl_row_ref ref) {
    return !sl_ref_is_row(ref) && ref != SL_NO_REF;
}

typedef struct sl_id_entry {
    uint64_t id;    /* SL_NO_ID: empty */
    sl_row_ref ref; /* written before the id */
} sl_id_entry;

/* The rows of all ids. A full table is replaced by a larger one. The catalog keeps the old table, because a reader may
 * be using it. Sizes at least double, so all old tables together are no larger than the last. */
typedef struct sl_id_table {
    struct sl_id_table *older;
    size_t size;          /* number of refs, or of entries; the number of entries is a power of two */
    int dense;            /* 1: the ids are dense, and refs[id] is the id's row; 0: they are hashed into entries */
    sl_row_ref *refs;     /* NULL unless dense */
    sl_id_entry *entries; /* open addressing; NULL if dense */
    uint64_t seed;        /* seed of the ids' hash */
} sl_id_table;

/* All parts, by number. Lists are replaced and kept as tables are. */

typedef struct sl_part_list {
    struct sl_part_list *older;
    size_t capacity;
    void **parts;
} sl_part_list;

typedef struct sl_catalog {
    sl_allocator allocator;
    sl_id_table *table; /* atomic, its elements too */
    sl_part_list *list; /* atomic */
    size_t parts;       /* atomic: number of parts */
    size_t ids;         /* atomic: number of ids that have a row */
    size_t tombstones;  /* atomic: number of ids that have a tombstone */
    /* Only the changing thread uses the rest. */
    uint64_t largest;   /* the largest id in the table */
    size_t most;        /* the most ids that had rows at one time */
    uint32_t deletions; /* number of the next tombstone */
} sl_catalog;

/* A catalog forgets no tombstone while it has so few. */
#define SL_TOMBSTONES_LEAST 16384u

/* Makes an empty catalog. Errors: SL_ENOMEM. */
sl_status sl_catalog_init(sl_catalog *catalog, const sl_allocator *allocator);
/* Frees the tables and lists, but not the parts, which are the caller's. Takes a zeroed catalog. */
void sl_catalog_free(sl_catalog *catalog);

/* Makes room for n ids and `parts` more parts. After that, sl_catalog_add, _put and _delete can't fail. Readers are not
 * disturbed.
 * Errors: SL_ENOMEM, SL_ELIMIT. */
sl_status sl_catalog_reserve(sl_catalog *catalog, const uint64_t *ids, size_t n, size_t parts);
/* Adds a part. Its room must be reserved. Returns its number. */
size_t sl_catalog_add(sl_catalog *catalog, void *part);
/* Maps an id to a row. Its room must be reserved. Returns 1 if the id had no row before, else 0. */
int sl_catalog_put(sl_catalog *catalog, uint64_t id, sl_row_ref ref);
/* Gives an id a tombstone. Its room must be reserved. Returns 1 if the id had a row before, else 0. */
int sl_catalog_delete(sl_catalog *catalog, uint64_t id);

/* Ids with tombstones, those of the oldest deletions first. */
typedef struct sl_deleted_ids {
    uint64_t *ids;
    size_t n, room;
} sl_deleted_ids;
/* Lists the newest tombstones: as many as the catalog ever had ids at one time, and at least SL_TOMBSTONES_LEAST. The
 * caller frees the list.
 * Threads: no thread may change the catalog meanwhile. Errors: SL_ENOMEM. */
sl_status sl_catalog_deleted(const sl_catalog *catalog, sl_deleted_ids *out);
void sl_deleted_ids_free(const sl_allocator *allocator, sl_deleted_ids *deleted);
/* Takes the tombstones of another catalog over, before this one has ids of its own. If
 * they are more than twice as many as sl_catalog_deleted lists, takes only those that it lists. So memory stays in
 * proportion to the items, however many ids come and go. Errors: SL_ENOMEM. */
sl_status sl_catalog_copy_tombstones(sl_catalog *catalog, const sl_catalog *from);

/* Finds the first of n ids that comes a second time: *at is its number, or n. Errors: SL_ENOMEM. */
sl_status sl_ids_find_repeated(const sl_allocator *allocator, const uint64_t *ids, size_t n, size_t *at);

static inline void *sl_catalog_part(const sl_catalog *catalog, size_t part) {
    const sl_part_list *list = __atomic_load_n(&catalog->list, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&list->parts[part], __ATOMIC_ACQUIRE);
}
static inline size_t sl_catalog_parts(const sl_catalog *catalog) {
    return __atomic_load_n(&catalog->parts, __ATOMIC_ACQUIRE);
}
static inline size_t sl_catalog_size(const sl_catalog *catalog) {
    return __atomic_load_n(&catalog->ids, __ATOMIC_RELAXED);
}

static inline size_t sl_catalog_tombstones(const sl_catalog *catalog) {
    return __atomic_load_n(&catalog->tombstones, __ATOMIC_RELAXED);
}

static inline const sl_id_table *sl_catalog_table(const sl_catalog *catalog) {
    return __atomic_load_n(&catalog->table, __ATOMIC_ACQUIRE);
}
/* The entry where the search for an id begins. */
static inline size_t sl_id_place(const sl_id_table *table, uint64_t id) {
    return (size_t)sl_id_hash(table->seed, id) & (table->size - 1);
}

/* The row of an id, its tombstone, or SL_NO_REF. */
static inline sl_row_ref sl_id_table_find(const sl_id_table *table, uint64_t id) {
    if (table->dense) return id < table->size ? __atomic_load_n(&table->refs[id], __ATOMIC_ACQUIRE) : SL_NO_REF;
    SL_PROBE(at, sl_id_hash(table->seed, id), table->size) {
        uint64_t found = __atomic_load_n(&table->entries[at].id, __ATOMIC_ACQUIRE);
        if (found == SL_NO_ID) return SL_NO_REF;
        if (found == id) return __atomic_load_n(&table->entries[at].ref, __ATOMIC_ACQUIRE);
    }
}
/* Prefetches the memory that sl_id_table_find reads. */
static inline void sl_id_table_prefetch(const sl_id_table *table, uint64_t id) {
    if (!table->dense)
        sl_prefetch(&table->entries[sl_id_place(table, id)], 1);
    else if (id < table->size)
        sl_prefetch(&table->refs[id], 1);
}
static inline sl_row_ref sl_catalog_find(const sl_catalog *catalog, uint64_t id) {
    return sl_id_table_find(sl_catalog_table(catalog), id);
}

#endif
