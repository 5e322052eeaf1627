/* The start of a query's walk. If there are partitions, it starts from the nodes of the nearest one, which lie one
 * behind the other in memory. Reading them costs a fraction of what a descent pays for as many nodes, which are
 * scattered. The walk goes on from the best of hundreds of near nodes instead of one. */
#ifndef SL_HNSW_SEARCH_START_NODES_H
#define SL_HNSW_SEARCH_START_NODES_H

#include "hnsw/search/walk.h"

/* Returns the bytes of scratch that sl_start_nodes needs, aligned to a cache line. 0 if it finds no nodes. */
size_t sl_start_nodes_scratch(const sl_graph *graph);

/* Returns the start nodes of the walk's query. The range is empty if a descent is better: without partitions, or if
 * partitions have many nodes, as in a very large index. */
sl_range sl_start_nodes(sl_walk *walk, sl_query query, uint8_t *scratch);

/* Returns about how many evaluations sl_start_nodes and the walk's start take. Unlike later evaluations, they read
 * consecutive rows. */
size_t sl_start_nodes_evaluations(const sl_graph *graph);

#endif
