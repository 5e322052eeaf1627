/*
 * Searches for one query without the graph. It scores all centroids, then the rows of the partitions nearest to the
 * query.
 *
 * A walk evaluates fewer rows, but they are scattered, and it knows the next row only after it has scored the last one.
 * Consecutive rows stream into the cache. So a scan is faster if walks would go far: under inner product, for which
 * graphs are poor guides, and at high recall.
 */
#ifndef SL_HNSW_SEARCH_SCAN_QUERY_H
#define SL_HNSW_SEARCH_SCAN_QUERY_H

#include "hnsw/search/walk.h"

/* Returns the bytes of scratch that sl_scan_query needs, aligned to a cache line. */
size_t sl_scan_query_scratch(const sl_graph *graph);

/* Fills the walk's pool with the `keep` best nodes of the nearest partitions. sl_scan_probes gives the number of
 * partitions. The pool has room for `keep`, the walk has its query, and sl_can_scan accepts the parameters. */
void sl_scan_query(sl_walk *walk, sl_query query, const sl_search_params *params, size_t keep, uint8_t *scratch);

#endif
