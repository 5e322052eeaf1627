/* Filtered candidates by the graph alone: a walk over the allowed nodes (ACORN, arXiv 2403.04871), for the strategy
 * HOPS. */
#ifndef SL_HNSW_SEARCH_WALK_ALLOWED_H
#define SL_HNSW_SEARCH_WALK_ALLOWED_H

#include "hnsw/search/allowed.h"
#include "hnsw/search/topk.h"
#include "hnsw/search/walk.h"

/* The most nodes that the walk starts from. */
enum { SL_SEEDS = 128 };

/* Returns how many candidates the walk keeps. Its pool needs so much room. */
size_t sl_walk_allowed_pool_ef(size_t ef);

/* Walks from allowed nodes to allowed nodes, and leaves the `keep` best in the walk's pool. Where a node has few
 * allowed neighbours, the walk goes on to allowed neighbours of its refused ones. It expands ef nodes at least, and
 * goes on, up to sl_walk_allowed_pool_ef, while it finds more of the k best. The walk has its query.
 * Parameters: seeds: nodes to start from. best: an empty heap for k. */
void sl_walk_allowed(sl_walk *walk, const sl_allowed *allowed, const uint32_t *seeds, size_t count, size_t ef,
                     size_t keep, sl_top best);

#endif
