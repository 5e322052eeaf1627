/* Checks that an index may be changed. */
#ifndef SL_HNSW_GRAPH_RESERVE_H
#define SL_HNSW_GRAPH_RESERVE_H

#include "hnsw/graph/index.h"

/* Checks that the index may be changed. Errors: SL_EREADONLY for an index that is mapped from its file. */
sl_status sl_index_writable(const sl_index *index);

#endif
