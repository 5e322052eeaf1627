/*
 * Where a walk for a query begins: at the nodes of the partition nearest to it, where there are partitions. They are
 * one behind the other in memory and cost a fraction of as many on the way down the upper layers, each of which lies
 * somewhere else, and the walk has the best of hundreds near the query to go on from instead of one.
 */
#ifndef SL_HNSW_SEARCH_START_H
#define SL_HNSW_SEARCH_START_H

#include "hnsw/search/walk.h"

/* Bytes of scratch that this takes, aligned to a cache line; 0 where it is of no use. */
size_t sl_start_scratch(const sl_index *index);

/* The nodes to begin at, for the walk's query; none where the way down serves better: of an index without partitions,
 * or so large that they hold many nodes. */
sl_range sl_start_near(sl_walk *walk, const void *query, sl_dtype dtype, uint8_t *scratch);

/* About how many evaluations it takes, and the walk for what it begins at: of rows one behind the other, unlike those
 * that follow. */
size_t sl_start_evaluations(const sl_index *index);

#endif
