/* A map from an id to a row of a part. Parts do not move: new rows come in parts of their own.
 * Threads: one thread changes a catalog. Any number look ids up meanwhile, without waiting. For each id they see the
 * row before a change or the row after it. */
#ifndef SL_RECOMMEND_CATALOG_H
#define SL_RECOMMEND_CATALOG_H

#include "base/id_hash.h"
#include "base/memory.h"
#include "base/prefetch.h"

/* A row: the number of its part in the upper 32 bits, its number in that part in the lower. */
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

typedef struct sl_id_entry {
    uint64_t id;    /* SL_NO_ID: empty */
    sl_row_ref ref; /* written before the id */
} sl_id_entry;

/* The rows of all ids. A larger table replaces one that is full. The catalog keeps the old one, because a reader may be
 * using it. Each is at least twice its predecessor, so that all old ones together are no larger than the last. */
typedef struct sl_id_table {
    struct sl_id_table *older;
    size_t size;          /* of refs, or of entries: then a power of two */
    int dense;            /* 1: ids are close together, and refs[id] is the id's row; 0: they are hashed into entries */
    sl_row_ref *refs;     /* NULL unless dense */
    sl_id_entry *entries; /* open addressing; NULL if dense */
    uint64_t seed;        /* of the ids' places among entries */
} sl_id_table;

/* The parts by their numbers. Lists are replaced and kept as tables are. */

typedef struct sl_part_list {
    struct sl_part_list *older;
    size_t capacity;
    void **parts;
} sl_part_list;

typedef struct sl_catalog {
    sl_allocator allocator;
    sl_id_table *table; /* atomic, as its elements are */
    sl_part_list *list; /* atomic */
    size_t parts;       /* atomic: number of parts */
    size_t ids;         /* atomic: number of known ids */
    uint64_t largest;   /* the changing thread's: the largest known id */
} sl_catalog;

/* Makes an empty catalog. Errors: SL_ENOMEM. */
sl_status sl_catalog_init(sl_catalog *catalog, const sl_allocator *allocator);
/* Frees the tables and lists; the parts are the caller's. Takes a zeroed catalog. */
void sl_catalog_free(sl_catalog *catalog);

/* Makes room for n ids and `parts` more parts, so that sl_catalog_add and sl_catalog_put cannot fail. Readers notice
 * nothing. Errors: SL_ENOMEM, SL_ELIMIT. */
sl_status sl_catalog_reserve(sl_catalog *catalog, const uint64_t *ids, size_t n, size_t parts);
/* Adds a part, for which room was made. Returns its number. */
size_t sl_catalog_add(sl_catalog *catalog, void *part);
/* Maps an id, for which room was made, to a row. Returns 1 for a new id, else 0. */
int sl_catalog_put(sl_catalog *catalog, uint64_t id, sl_row_ref ref);

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

static inline const sl_id_table *sl_catalog_table(const sl_catalog *catalog) {
    return __atomic_load_n(&catalog->table, __ATOMIC_ACQUIRE);
}
/* The entry where the search for an id begins. */
static inline size_t sl_id_place(const sl_id_table *table, uint64_t id) {
    return (size_t)sl_id_hash(table->seed, id) & (table->size - 1);
}

/* Returns the row of an id, or SL_NO_REF. */
static inline sl_row_ref sl_id_table_find(const sl_id_table *table, uint64_t id) {
    if (table->dense) return id < table->size ? __atomic_load_n(&table->refs[id], __ATOMIC_ACQUIRE) : SL_NO_REF;
    for (size_t at = sl_id_place(table, id);; at = (at + 1) & (table->size - 1)) {
        uint64_t found = __atomic_load_n(&table->entries[at].id, __ATOMIC_ACQUIRE);
        if (found == SL_NO_ID) return SL_NO_REF;
        if (found == id) return __atomic_load_n(&table->entries[at].ref, __ATOMIC_ACQUIRE);
    }
}
/* Prefetches the memory that looking an id up reads. */
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
