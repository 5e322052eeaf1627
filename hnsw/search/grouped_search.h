/* Searches that return only a few results of each key (group_size), or one of each id. */
#ifndef SL_HNSW_SEARCH_GROUPED_SEARCH_H
#define SL_HNSW_SEARCH_GROUPED_SEARCH_H

#include "hnsw/search/searcher_state.h"

/* Leaves the results in the searcher, best first. The searcher is prepared for the query. The index is not empty, and
 * has keys if params->group_size is set. Errors: SL_ENOMEM. */
sl_status sl_search_grouped(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params);

#endif
