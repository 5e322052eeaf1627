/*
 * Many queries at once, without the graph: each looks at the partitions nearest to it, and a partition is read once for
 * all queries that look at it, as products of a tile of its rows with all of them. A walk reads fewer rows, but each
 * from somewhere else and for one query alone; from some dozen queries a partition on, the product is cheaper.
 */
#ifndef SL_HNSW_SEARCH_PARTITION_SCAN_H
#define SL_HNSW_SEARCH_PARTITION_SCAN_H

#include "hnsw/search/batch.h"

/* Queries a thread below which each is scanned for alone: too few would meet at a partition. */
#define SL_SCAN_FEW 16u

/* Whether this index, on this machine, can be scanned for such queries. */
int sl_scan_serves(const sl_index *index, const sl_search_params *params);

/* How many partitions a query looks at: more than asked for where a part of what they hold is deleted. */
size_t sl_scan_probes(const sl_index *index, const sl_search_params *params);

/* In how many groups it looks for them, more where some are deleted; 0: among all partitions. */
size_t sl_scan_groups(const sl_index *index, const sl_search_params *params);

/* Every query's results, as sl_index_search writes them, of queries that have passed sl_vector_check. */
sl_status sl_scan_run(sl_query_batch *batch, sl_search_stats *stats);

#endif
