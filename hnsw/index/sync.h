/* Making the changes of a file durable that is written in place. */
#ifndef SL_HNSW_INDEX_SYNC_H
#define SL_HNSW_INDEX_SYNC_H

#include "hnsw/graph/index.h"

/* As sl_index_sync, for a caller that has the index for a change. The index must have a writer. */
sl_status sl_sync(sl_index *index);

#endif
