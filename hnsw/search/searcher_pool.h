/* Searchers that batch calls leave for the next call: making a searcher takes as long as a short search. */
#ifndef SL_HNSW_SEARCH_SEARCHER_POOL_H
#define SL_HNSW_SEARCH_SEARCHER_POOL_H

#include "hnsw/graph/index.h"

/* Gives a searcher with room for at least max_ef. It is the caller's until it is given back. */
sl_status sl_searcher_pool_take(const sl_index *index, size_t max_ef, sl_searcher **out);
/* Takes a searcher back, or NULL. */
void sl_searcher_pool_give(const sl_index *index, sl_searcher *searcher);

sl_status sl_searcher_pool_init(sl_index *index);
void sl_searcher_pool_free(sl_index *index);

#endif
