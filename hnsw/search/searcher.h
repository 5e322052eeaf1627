/* A search for callers inside the library: it leaves what it found in the searcher's memory and copies nothing. */
#ifndef SL_HNSW_SEARCH_SEARCHER_H
#define SL_HNSW_SEARCH_SEARCHER_H

#include "hnsw/search/results.h"

/* Searches as sl_searcher_search does, and leaves the results in the searcher. stats may be NULL. */
sl_status sl_searcher_find(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params,
                           sl_results *found, sl_search_stats *stats);

/* Walks and ranks for one query. sl_searcher_find would accept the parameters. */
sl_status sl_searcher_run(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params);

#endif
