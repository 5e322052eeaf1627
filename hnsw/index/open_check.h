/* The check of an index that was copied into memory. A writer of such an index then trusts its numbers. A mapped index
 * is not checked at opening: walks check the numbers that they read. */
#ifndef SL_HNSW_INDEX_OPEN_CHECK_H
#define SL_HNSW_INDEX_OPEN_CHECK_H

#include "hnsw/graph/index.h"

/* Checks an index in DRAM before its file is closed. Errors: SL_ECORRUPT names the fault. */
sl_status sl_open_check(const sl_graph *graph, size_t threads);

#endif
