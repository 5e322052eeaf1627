/*
 * Many queries at once, without the graph: each looks at the partitions nearest to it, and a partition is read once for
 * all queries that look at it, as products of a tile of its rows with all of them. A walk reads fewer rows, but each
 * from somewhere else and for one query alone; from some dozen queries a partition on, the product is cheaper.
 */
#ifndef SL_HNSW_SCAN_H
#define SL_HNSW_SCAN_H

#include "hnsw/batch.h"

/* Whether this index, on this machine, can be scanned for such a batch. */
int sl_scan_serves(const sl_batch *batch);

/* Every query's results, as sl_index_search writes them, of queries that have passed sl_vector_check. */
sl_status sl_scan_run(sl_batch *batch, sl_search_stats *stats);

#endif
