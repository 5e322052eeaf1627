/* Finding what a search may return, by walks, and by comparisons where little else is left. It goes on until enough
 * nodes are found that are not deleted and that a filter accepts. */
#ifndef SL_HNSW_SEARCH_WIDEN_H
#define SL_HNSW_SEARCH_WIDEN_H

#include "hnsw/search/walk.h"

/* Puts the nodes that may be returned into the walk's pool, in any order. The caller has emptied the pool and asked
 * the walk. The index is not empty.
 * Parameters: `wanted`: how many nodes will be ranked. `deepest`: with a filter that leaves too few, walks go on to
 * this ef. Deleted nodes are no limit: without a filter k are found as long as k are left. `near`: walks start from
 * it; where it is empty they start where the upper layers lead. */
void sl_widen(sl_walk *walk, size_t k, const sl_search_params *params, size_t wanted, size_t deepest, sl_range near);

/* Puts the best of all nodes that are not deleted into the walk's pool, up to `most`, without the graph. The pool has
 * room for `most`. */
void sl_widen_all(sl_walk *walk, size_t most);

#endif
