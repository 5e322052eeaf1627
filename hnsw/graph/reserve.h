/* Checks that an index may be changed. */
#ifndef SL_HNSW_GRAPH_RESERVE_H
#define SL_HNSW_GRAPH_RESERVE_H

#include "hnsw/graph/index.h"

/* Checks that the index may be changed. Errors: SL_EREADONLY for an index that is mapped from its file. */
sl_status sl_index_writable(const sl_index *index);

/* Makes room for n nodes, for a caller that has the index for a change. Errors: those of sl_index_reserve. */
sl_status sl_capacity_reserve(sl_index *index, size_t n);
/* Gives the room beyond the nodes back, if it's more than an eighth. Errors: SL_ENOMEM: the room stays. */
sl_status sl_capacity_trim(sl_index *index);

#endif
