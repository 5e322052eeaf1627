/* The check of an index that was copied into memory. Later calls that change it trust its numbers. A mapped index isn't
 * checked at opening, because walks check the numbers they read. */
#ifndef SL_HNSW_INDEX_OPEN_CHECK_H
#define SL_HNSW_INDEX_OPEN_CHECK_H

#include "hnsw/graph/index.h"

/* Checks an index in memory, before its file is closed. Errors: SL_ECORRUPT names the fault. */
sl_status sl_open_check(const sl_graph *graph, size_t threads);

#endif
