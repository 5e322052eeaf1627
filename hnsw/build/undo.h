/* Takes a build back that failed or was cancelled. */
#ifndef SL_HNSW_BUILD_UNDO_H
#define SL_HNSW_BUILD_UNDO_H

#include "hnsw/build/build.h"

/* Takes the build's nodes back, and puts back the entry point and the next id that there were before. Links
 * that the nodes had pushed out do not come back. A node that is left with few links looks for neighbours anew. All
 * nodes do, if most are left with few. */
void sl_build_undo(sl_build *build, sl_entry entry, uint64_t next_id);

#endif
