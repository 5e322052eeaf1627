/* Members that were met, while candidates are gathered. */
#ifndef SL_HNSW_BUILD_SEEN_SET_H
#define SL_HNSW_BUILD_SEEN_SET_H

#include "base/memory.h"

/* Members that were met. Clearing takes as long as what was met. */
typedef struct sl_seen {
    sl_allocator allocator;
    uint32_t *table; /* member by hash; SL_NONE: free */
    uint32_t *used;  /* places of the members */
    size_t count, places;
    unsigned shift; /* of the hash */
} sl_seen;

/* Makes room for `most` members. The caller frees, also on failure. Errors: SL_ENOMEM. */
size_t sl_seen_bytes(size_t most);
sl_status sl_seen_init(sl_seen *seen, const sl_allocator *allocator, size_t most);
void sl_seen_free(sl_seen *seen);
void sl_seen_clear(sl_seen *seen);
/* Notes a member. Returns whether it was not there before. */
int sl_seen_add(sl_seen *seen, uint32_t point);

#endif
