/* Undoes a build that failed or was cancelled. */
#ifndef SL_HNSW_CONSTRUCT_UNDO_H
#define SL_HNSW_CONSTRUCT_UNDO_H

#include "hnsw/construct/build.h"

/* Removes the build's nodes, and restores the entry point and the next id. Links that the build's nodes displaced don't
 * come back. A node left with few links is inserted again. If most nodes are left with few links, all are linked
 * anew. */
void sl_build_undo(sl_build *build, sl_entry entry, uint64_t next_id);

#endif
