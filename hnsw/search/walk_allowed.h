/* Candidates of a search with a filter, by the graph alone: a walk over the allowed nodes (ACORN, arXiv 2403.04871). */
#ifndef SL_HNSW_SEARCH_WALK_ALLOWED_H
#define SL_HNSW_SEARCH_WALK_ALLOWED_H

#include "hnsw/search/allowed.h"
#include "hnsw/search/topk.h"
#include "hnsw/search/walk.h"

/* Nodes that the walk begins at, at most. */
enum { SL_SEEDS = 128 };

/* Returns how many candidates the walk keeps. The walk's pool needs so much room. */
size_t sl_walk_allowed_pool_ef(size_t ef);

/* Walks from allowed nodes to allowed nodes, and leaves the `keep` best in the walk's pool. A node with few allowed
 * neighbours leads to the allowed neighbours of those that are not allowed. The walk expands ef nodes at least, and
 * goes on while it finds more of the k best, up to the depth.
 * Parameters: `best`: an empty heap for k. The walk has been asked the query. */
void sl_walk_allowed(sl_walk *walk, const sl_allowed *allowed, const uint32_t *seeds, size_t count, size_t ef,
                     size_t keep, sl_top best);

#endif
