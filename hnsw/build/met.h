/* Members that were met, while candidates are gathered. */
#ifndef SL_HNSW_BUILD_MET_H
#define SL_HNSW_BUILD_MET_H

#include "base/memory.h"

/* Members that were met. Clearing takes as long as what was met. */
typedef struct sl_met {
    sl_allocator allocator;
    uint32_t *table; /* member by hash; SL_NONE: free */
    uint32_t *used;  /* places of the members */
    size_t count, places;
    unsigned shift; /* of the hash */
} sl_met;

/* Makes room for `most` members. The caller frees, also on failure. Errors: SL_ENOMEM. */
size_t sl_met_bytes(size_t most);
sl_status sl_met_init(sl_met *met, const sl_allocator *allocator, size_t most);
void sl_met_free(sl_met *met);
void sl_met_clear(sl_met *met);
/* Notes a member. Returns whether it was not there before. */
int sl_met_add(sl_met *met, uint32_t member);

#endif
