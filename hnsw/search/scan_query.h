/*
 * One query without the graph: all centroids are scored, and the partitions nearest to the query are read from end to
 * end.
 * A walk evaluates fewer rows, but each lies somewhere else, and the next row is known only when the one before has
 * been scored. Rows that lie one behind the other stream into the cache by themselves. A scan therefore wins where
 * walks go far: under inner product, whose graphs are poor guides, and at high recall.
 */
#ifndef SL_HNSW_SEARCH_SCAN_QUERY_H
#define SL_HNSW_SEARCH_SCAN_QUERY_H

#include "hnsw/search/walk.h"

/* Returns the bytes of scratch that a probe of this index takes, aligned to a cache line. */
size_t sl_scan_query_scratch(const sl_graph *graph);

/* Puts up to `keep` nodes of as many partitions as sl_scan_probes says into the walk's pool, which has room for as
 * many. The walk has been asked the same query. sl_can_scan accepts the parameters. */
void sl_scan_query(sl_walk *walk, sl_query query, const sl_search_params *params, size_t keep, uint8_t *scratch);

#endif
