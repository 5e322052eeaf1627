/* Idle searchers for the next batch call. Making a searcher takes as long as a short search. */
#ifndef SL_HNSW_SEARCH_SEARCHER_POOL_H
#define SL_HNSW_SEARCH_SEARCHER_POOL_H

#include "hnsw/graph/index.h"

/* Takes a searcher with at least max_ef, or makes one. The caller gives it back. Errors: SL_ENOMEM. */
sl_status sl_searcher_pool_take(const sl_index *index, size_t max_ef, sl_searcher **out);
/* Returns a searcher to the pool; NULL does nothing. */
void sl_searcher_pool_give(const sl_index *index, sl_searcher *searcher);

sl_status sl_searcher_pool_init(sl_index *index);
void sl_searcher_pool_free(sl_index *index);

#endif
