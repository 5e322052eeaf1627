/* Searches that may not return every node, because of a filter, a callback or deletions: which strategy costs least,
 * and results in every case. */
#ifndef SL_HNSW_SEARCH_FILTER_STRATEGY_H
#define SL_HNSW_SEARCH_FILTER_STRATEGY_H

#include "hnsw/search/scan_allowed.h"

typedef struct sl_filtered_search {
    sl_walk *walk;
    const sl_search_params *params;
    sl_query query;
    size_t k;
    size_t rerank;    /* sl_rerank_count */
    size_t max_ef;    /* as sl_widen_beam has it */
    uint8_t *scratch; /* for sl_start_nodes, and for what partitions need: sl_scan_allowed_scratch */
} sl_filtered_search;

/* Leaves candidates in the walk's pool. The walk has been asked the query. Returns the strategy that it ended with. */
sl_filter_strategy sl_search_filtered(sl_filtered_search *of);

#endif
