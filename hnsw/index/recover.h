/* Recovery after a crash in persistent memory. */
#ifndef SL_HNSW_INDEX_RECOVER_H
#define SL_HNSW_INDEX_RECOVER_H

#include "hnsw/graph/index.h"

/* Mends an index that was just opened for writing: links half-linked nodes, frees slots without a node, and counts
 * tombstones again. */
sl_status sl_index_recover(sl_index *index);

#endif
