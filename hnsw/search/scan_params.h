/* Whether a search scans partitions in place of walking, and how many. */
#ifndef SL_HNSW_SEARCH_SCAN_PARAMS_H
#define SL_HNSW_SEARCH_SCAN_PARAMS_H

#include "hnsw/graph/index.h"

/* A batch with fewer queries a thread scans for each query alone: too few queries would share a partition. */
#define SL_SCAN_MIN_QUERIES 16u

/* Whether searches with these parameters can scan this index on this machine. */
int sl_can_scan(const sl_graph *graph, const sl_search_params *params);

/* Returns how many partitions a query scans: more than its probes where nodes are deleted. */
size_t sl_scan_probes(const sl_graph *graph, const sl_search_params *params);

/* Returns among how many groups' partitions a query chooses, more where nodes are deleted. 0: among all partitions. */
size_t sl_scan_groups(const sl_graph *graph, const sl_search_params *params);

#endif
