/* After a crash: what an index that was just opened to be written is mended of. */
#ifndef SL_HNSW_INDEX_RECOVER_H
#define SL_HNSW_INDEX_RECOVER_H

#include "hnsw/graph/index.h"

/* Nodes that a crash left half linked are linked, slots without a node are let go, and marks of deletion that a crash
 * left uncounted are counted. */
sl_status sl_index_recover(sl_index *index);

#endif
