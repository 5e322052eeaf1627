/* What a search may return: walks and, where little else is left, comparisons, until they have found enough that is not
 * deleted and that a filter accepts. */
#ifndef SL_HNSW_SEARCH_WIDEN_H
#define SL_HNSW_SEARCH_WIDEN_H

#include "hnsw/search/walk.h"

/* The nodes that may be returned, in any order, into the walk's pool, which the caller has emptied; the walk has been
 * asked, and the index is not. `wanted` is how many will be ranked. With a filter that leaves too few, walks go on to
 * an ef of `deepest`; what is deleted is no limit to them: as long as k are left that are not deleted, and no filter is
 * given, k are found. Walks start from `near`, or where it is empty from where the way down the upper layers leads. */
void sl_widen(sl_walk *walk, size_t k, const sl_search_params *params, size_t wanted, size_t deepest, sl_range near);

/* The best of all nodes that are not deleted into the walk's pool, up to `most`, which it has room for, without the
 * graph. */
void sl_widen_all(sl_walk *walk, size_t most);

#endif
