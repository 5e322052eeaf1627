/* The choice between scanning partitions and walking, and the number of partitions that a search scans. */
#ifndef SL_HNSW_SEARCH_SCAN_PARAMS_H
#define SL_HNSW_SEARCH_SCAN_PARAMS_H

#include "hnsw/graph/index.h"

/* With fewer queries per thread, a batch scans for each query alone, because too few of them would share a partition.
 */
#define SL_SCAN_MIN_QUERIES 16u

/* Returns whether searches with these parameters can scan this index on this machine. */
int sl_can_scan(const sl_graph *graph, const sl_search_params *params);

/* Returns how many partitions each query scans: its probes, or more if nodes are deleted. */
size_t sl_scan_probes(const sl_graph *graph, const sl_search_params *params);

/* Returns in how many of the nearest groups a query chooses its partitions. More if nodes are deleted. 0: it chooses
 * among all partitions. */
size_t sl_scan_groups(const sl_graph *graph, const sl_search_params *params);

#endif
