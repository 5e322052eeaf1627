/* Searches for callers inside the library. The results stay in the searcher's memory. */
#ifndef SL_HNSW_SEARCH_SEARCHER_H
#define SL_HNSW_SEARCH_SEARCHER_H

#include "hnsw/search/results.h"

/* Searches as sl_searcher_search does, without copying the results out. stats may be NULL. */
sl_status sl_searcher_find(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params,
                           sl_results *found, sl_search_stats *stats);

/* The same with parameters that are checked already. */
sl_status sl_searcher_run(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params);

#endif
