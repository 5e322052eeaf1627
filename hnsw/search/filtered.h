/* Searches that may not return every node, because of a filter, a callback or deletions: which strategy costs least,
 * and results in every case. */
#ifndef SL_HNSW_SEARCH_FILTERED_H
#define SL_HNSW_SEARCH_FILTERED_H

#include "hnsw/search/nearest_allowed.h"

typedef struct sl_filtered {
    sl_walk *walk;
    const sl_search_params *params;
    sl_query query;
    size_t k;
    size_t ranked;    /* sl_rerank_count */
    size_t deepest;   /* as sl_widen has it */
    uint8_t *scratch; /* for sl_start_near, and for what partitions need: sl_nearest_scratch */
} sl_filtered;

/* Leaves candidates in the walk's pool. The walk has been asked the query. Returns the strategy that it ended with. */
sl_filter_strategy sl_filtered_find(sl_filtered *of);

#endif
