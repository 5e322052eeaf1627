/* Whether a search scans partitions in place of walking, and how many. */
#ifndef SL_HNSW_SEARCH_SCAN_PARAMS_H
#define SL_HNSW_SEARCH_SCAN_PARAMS_H

#include "hnsw/graph/index.h"

/* Queries a thread below which a batch scans for each query alone: too few would meet at a partition. */
#define SL_SCAN_MIN_QUERIES 16u

/* Tells whether this index, on this machine, can be scanned for searches with these parameters. */
int sl_can_scan(const sl_graph *graph, const sl_search_params *params);

/* Returns how many partitions a query looks at: more than asked for where some of their nodes are deleted. */
size_t sl_scan_probes(const sl_graph *graph, const sl_search_params *params);

/* Returns in how many groups a query looks for partitions, more where nodes are deleted; 0: among all partitions. */
size_t sl_scan_groups(const sl_graph *graph, const sl_search_params *params);

#endif
