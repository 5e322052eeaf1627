/* Where a query's walk starts: the nodes of the partition nearest to the query, if there are partitions. These nodes
 * lie one behind the other in memory. They cost a fraction of as many nodes of a descent, each of which lies somewhere
 * else. The walk goes on from the best of hundreds of near nodes instead of one. */
#ifndef SL_HNSW_SEARCH_START_NODES_H
#define SL_HNSW_SEARCH_START_NODES_H

#include "hnsw/search/walk.h"

/* Returns the bytes of scratch of sl_start_nodes, aligned to a cache line; 0 if it finds no nodes. */
size_t sl_start_nodes_scratch(const sl_graph *graph);

/* Returns the start nodes of the walk's query. The range is empty where a descent is better: without partitions, or
 * with many nodes in each, as in a very large index. */
sl_range sl_start_nodes(sl_walk *walk, sl_query query, uint8_t *scratch);

/* Returns about how many evaluations sl_start_nodes and the walk's start take. They read rows that lie one behind the
 * other, unlike later ones. */
size_t sl_start_nodes_evaluations(const sl_graph *graph);

#endif
