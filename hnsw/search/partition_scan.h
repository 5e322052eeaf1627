/*
 * Many queries at once, without the graph: each looks at the partitions nearest to it. A partition is read once for
 * all queries that look at it, as products of a tile of its rows with all of them.
 * A walk reads fewer rows, but each from somewhere else, and for one query alone. From some dozen queries a partition
 * on, the product is cheaper.
 */
#ifndef SL_HNSW_SEARCH_PARTITION_SCAN_H
#define SL_HNSW_SEARCH_PARTITION_SCAN_H

#include "hnsw/search/batch.h"

/* Queries a thread below which a batch scans for each query alone: too few would meet at a partition. */
#define SL_SCAN_FEW 16u

/* Tells whether this index, on this machine, can be scanned for searches with these parameters. */
int sl_scan_serves(const sl_graph *graph, const sl_search_params *params);

/* Returns how many partitions a query looks at: more than asked for where some of their nodes are deleted. */
size_t sl_scan_probes(const sl_graph *graph, const sl_search_params *params);

/* Returns in how many groups a query looks for partitions, more where nodes are deleted; 0: among all partitions. */
size_t sl_scan_groups(const sl_graph *graph, const sl_search_params *params);

/* Writes every query's results, as sl_index_search does. The queries have passed sl_vector_check. Errors: SL_ENOMEM. */
sl_status sl_scan_run(sl_query_batch *batch, sl_search_stats *stats);

#endif
