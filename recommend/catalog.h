/* Which part, and which of its rows, holds what belongs to an id. One thread changes a catalog; any number look things
 * up beside it without waiting, and see of each id the row before the change or the row after it. Parts do not move:
 * new rows come in parts of their own. */
#ifndef SL_RECOMMEND_CATALOG_H
#define SL_RECOMMEND_CATALOG_H

#include "base/memory.h"
#include "base/prefetch.h"
#include "base/random.h"

/* A row: its part's number above its number in the part. */
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

typedef struct sl_id_slot {
    uint64_t id;    /* SL_NO_ID: empty */
    sl_row_ref ref; /* written before the id is */
} sl_id_slot;

/* What a table or list gave way to stays until the catalog is freed, since somebody may be reading it. Each is at least
 * twice the one before, so that all of them together are no larger than the last. */
typedef struct sl_id_table {
    struct sl_id_table *older;
    size_t size;       /* slots, a power of two; or ids below it are refs[] */
    int dense;         /* ids are so close together that they are their own places */
    sl_row_ref *refs;  /* dense */
    sl_id_slot *slots; /* not dense */
} sl_id_table;

typedef struct sl_part_list {
    struct sl_part_list *older;
    size_t capacity;
    void **parts;
} sl_part_list;

typedef struct sl_catalog {
    sl_allocator allocator;
    sl_id_table *table; /* atomic, as is all in it */
    sl_part_list *list; /* atomic */
    size_t parts;       /* atomic: how many there are */
    size_t ids;         /* atomic: how many are known */
    uint64_t largest;   /* the changing thread's: the largest id known */
} sl_catalog;

sl_status sl_catalog_init(sl_catalog *catalog, const sl_allocator *allocator);
/* The tables, not the parts. Takes a zeroed catalog. */
void sl_catalog_free(sl_catalog *catalog);

/* Makes room for `parts` more parts and these ids, so that what follows cannot fail. Readers notice nothing. */
sl_status sl_catalog_reserve(sl_catalog *catalog, const uint64_t *ids, size_t n, size_t parts);
/* Both need the room to have been made. The number of the part; and whether the id was new. */
size_t sl_catalog_add(sl_catalog *catalog, void *part);
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
static inline size_t sl_id_place(const sl_id_table *table, uint64_t id) {
    return (size_t)sl_random_at(id, 0) & (table->size - 1);
}

/* The id's row, or SL_NO_REF. */
static inline sl_row_ref sl_id_table_find(const sl_id_table *table, uint64_t id) {
    if (table->dense) return id < table->size ? __atomic_load_n(&table->refs[id], __ATOMIC_ACQUIRE) : SL_NO_REF;
    for (size_t at = sl_id_place(table, id);; at = (at + 1) & (table->size - 1)) {
        uint64_t found = __atomic_load_n(&table->slots[at].id, __ATOMIC_ACQUIRE);
        if (found == SL_NO_ID) return SL_NO_REF;
        if (found == id) return __atomic_load_n(&table->slots[at].ref, __ATOMIC_ACQUIRE);
    }
}
/* Asks for the memory that a look at the id will need. */
static inline void sl_id_table_prefetch(const sl_id_table *table, uint64_t id) {
    if (!table->dense)
        sl_prefetch(&table->slots[sl_id_place(table, id)], 1);
    else if (id < table->size)
        sl_prefetch(&table->refs[id], 1);
}
static inline sl_row_ref sl_catalog_find(const sl_catalog *catalog, uint64_t id) {
    return sl_id_table_find(sl_catalog_table(catalog), id);
}

#endif
