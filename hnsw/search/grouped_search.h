/* Searches for the best results of which only a few may have one key, and only one may have one id. */
#ifndef SL_HNSW_SEARCH_GROUPED_SEARCH_H
#define SL_HNSW_SEARCH_GROUPED_SEARCH_H

#include "hnsw/search/searcher_state.h"

/* Leaves the results in the searcher, best first. The searcher is ready for the query, and the index is not empty. It
 * has keys where params->group_size is set. Errors: SL_ENOMEM. */
sl_status sl_search_grouped(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params);

#endif
