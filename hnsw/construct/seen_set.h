/* The set of points that are candidates already. */
#ifndef SL_HNSW_CONSTRUCT_SEEN_SET_H
#define SL_HNSW_CONSTRUCT_SEEN_SET_H

#include "base/memory.h"

/* A hash table with linear probing. Clearing it takes time in proportion to the points in it. */
typedef struct sl_seen {
    sl_allocator allocator;
    uint32_t *table; /* points, placed by hash; SL_NONE: free */
    uint32_t *used;  /* places of `table` that hold a point */
    size_t count, places;
    unsigned shift; /* the hash is shifted right by this */
} sl_seen;

/* Bytes that sl_seen_init allocates. */
size_t sl_seen_bytes(size_t most);
/* Makes an empty set with room for `most` points. The caller frees, also on failure. Errors: SL_ENOMEM. */
sl_status sl_seen_init(sl_seen *seen, const sl_allocator *allocator, size_t most);
void sl_seen_free(sl_seen *seen);
void sl_seen_clear(sl_seen *seen);
/* Adds a point. Returns 1 if it wasn't in the set. */
int sl_seen_add(sl_seen *seen, uint32_t point);

#endif
