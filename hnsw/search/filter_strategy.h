/* Filtered searches. They choose the cheapest strategy, and try another if the first finds too few results. Searches
 * among tombstones and with callbacks come here too. */
#ifndef SL_HNSW_SEARCH_FILTER_STRATEGY_H
#define SL_HNSW_SEARCH_FILTER_STRATEGY_H

#include "hnsw/search/scan_allowed.h"

typedef struct sl_filtered_search {
    sl_walk *walk;
    const sl_search_params *params;
    sl_query query;
    size_t k;
    size_t rerank;    /* sl_rerank_count */
    size_t max_ef;    /* as in sl_beam_params */
    uint8_t *scratch; /* for sl_start_nodes and sl_scan_allowed_partitions */
} sl_filtered_search;

/* Leaves candidates in the walk's pool. The walk has its query. Returns the strategy that found them. */
sl_filter_strategy sl_search_filtered(sl_filtered_search *search);

#endif
