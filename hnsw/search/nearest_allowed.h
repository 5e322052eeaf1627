/* Candidates of a search with a filter, without the graph: the allowed nodes of the nearest partitions, as many
 * partitions as the query needs. */
#ifndef SL_HNSW_SEARCH_NEAREST_ALLOWED_H
#define SL_HNSW_SEARCH_NEAREST_ALLOWED_H

#include "hnsw/search/accept.h"
#include "hnsw/search/filter.h"
#include "hnsw/search/walk.h"

/* The results that are looked for. */
typedef struct sl_wanted {
    size_t k;
    size_t keep;   /* candidates that are left in the pool, at least k; the walk has room for as many */
    double missed; /* of the k best, so many may be missed on average */
} sl_wanted;

/* Bytes of scratch for a search for k. */
size_t sl_nearest_scratch(const sl_graph *graph, size_t k);

/* Leaves candidates in the walk's pool. The walk has been asked the query, and the index has partitions. */
void sl_nearest_allowed(sl_walk *walk, const sl_search_params *params, const void *query, sl_dtype dtype,
                        const sl_wanted *wanted, uint8_t *scratch);

/* Leaves the `keep` best of all allowed nodes in the pool. */
void sl_all_allowed(sl_walk *walk, const sl_search_params *params, const sl_allowed *allowed, size_t keep);

#endif
