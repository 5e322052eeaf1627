/*
 * The start of a query's walk: the nodes of the partition nearest to the query, where there are partitions.
 * These nodes lie one behind the other in memory. They cost a fraction of as many nodes on the way down the upper
 * layers, each of which lies somewhere else. The walk goes on from the best of hundreds near the query instead of from
 * one.
 */
#ifndef SL_HNSW_SEARCH_START_NODES_H
#define SL_HNSW_SEARCH_START_NODES_H

#include "hnsw/search/walk.h"

/* Returns the bytes of scratch of sl_start_nodes, aligned to a cache line; 0 where it finds nothing to begin at. */
size_t sl_start_nodes_scratch(const sl_graph *graph);

/* Returns the nodes to begin at, for the query that the walk was asked. The range is empty where the way down serves
 * better: without partitions, or with many nodes in each. A very large index has such partitions. */
sl_range sl_start_nodes(sl_walk *walk, sl_query query, uint8_t *scratch);

/* Returns about how many evaluations sl_start_nodes takes, and the walk for the nodes it begins at. Their rows lie one
 * behind the other, unlike those that follow. */
size_t sl_start_nodes_evaluations(const sl_graph *graph);

#endif
