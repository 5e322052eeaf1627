/* The parameters of a search: defaults, the settings for a recall, and checks. */
#ifndef SL_HNSW_SEARCH_SEARCH_PARAMS_H
#define SL_HNSW_SEARCH_SEARCH_PARAMS_H

#include "hnsw/graph/index.h"

/* Copies the caller's parameters for searches of nq queries into `mine`. If they ask for a recall, sets the tuned
 * settings for it. Errors: SL_EINVAL, SL_ENOTFOUND (no settings for the recall). */
sl_status sl_search_params_read(const sl_graph *graph, size_t nq, size_t k, const sl_search_params *given,
                                sl_search_params *mine);

/* Checks k, the element type of the queries and the parameters. Errors: SL_EINVAL, SL_ETYPE. */
sl_status sl_search_check(const sl_graph *graph, sl_dtype dtype, size_t k, const sl_search_params *params);

/* Refuses params->filters, which has one filter per query, in a call for a single query. Errors: SL_EINVAL. */
sl_status sl_one_query_check(const sl_search_params *params);

/* Returns how many threads search for nq queries.
 * Parameters: asked: the number that the caller gave. */
size_t sl_search_threads(size_t nq, size_t asked);

#endif
