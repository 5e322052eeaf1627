/* Candidates of a filtered search, found by a walk over the allowed nodes alone (ACORN, arXiv 2403.04871). This is the
 * strategy HOPS. */
#ifndef SL_HNSW_SEARCH_WALK_ALLOWED_H
#define SL_HNSW_SEARCH_WALK_ALLOWED_H

#include "hnsw/search/allowed.h"
#include "hnsw/search/topk.h"
#include "hnsw/search/walk.h"

/* The most nodes that the walk starts from. */
enum { SL_SEEDS = 128 };

/* Returns how many candidates the walk keeps. The walk's pool needs room for them. */
size_t sl_walk_allowed_pool_ef(size_t ef);

/* Walks from allowed nodes to allowed nodes, and leaves the `keep` best in the walk's pool. If a node has few allowed
 * neighbours, the walk goes on to allowed neighbours of its refused ones. It expands at least ef nodes, and goes on, up
 * to sl_walk_allowed_pool_ef, while it finds more of the k best. The walk has its query.
 * Parameters: seeds: nodes to start from. best: an empty heap for k. */
void sl_walk_allowed(sl_walk *walk, const sl_allowed *allowed, const uint32_t *seeds, size_t count, size_t ef,
                     size_t keep, sl_top best);

#endif
