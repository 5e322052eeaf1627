/* Searches with a filter: which strategy costs least, and results in every case. */
#ifndef SL_HNSW_SEARCH_FILTERED_H
#define SL_HNSW_SEARCH_FILTERED_H

#include "hnsw/search/nearest_allowed.h"

/* A query of a search with sl_search_params.filter. */
typedef struct sl_filtered {
    sl_walk *walk;
    const sl_search_params *params;
    const void *query;
    sl_dtype dtype;
    size_t k;
    size_t ranked;                    /* sl_rerank_count */
    size_t deepest;                   /* as sl_widen has it */
    uint8_t *scratch, *start_scratch; /* sl_nearest_scratch, and sl_start_scratch */
} sl_filtered;

/* Leaves candidates in the walk's pool. The walk has been asked the query. Returns the strategy that it ended with.
 * Errors: SL_ENOMEM. */
sl_status sl_filtered_find(sl_filtered *of, sl_filter_strategy *used);

#endif
