/* Candidates of a search with a filter, without the graph: the allowed nodes of the nearest partitions, as many
 * partitions as the query needs; or all allowed nodes. */
#ifndef SL_HNSW_SEARCH_SCAN_ALLOWED_H
#define SL_HNSW_SEARCH_SCAN_ALLOWED_H

#include "hnsw/search/allowed.h"
#include "hnsw/search/walk_allowed.h"

/* The results that are looked for. */
typedef struct sl_scan_goal {
    size_t k;
    size_t keep;                  /* candidates that are left in the pool, at least k; the walk has room for as many */
    double max_missed;            /* of the k best, so many may be missed on average */
    size_t max_nodes;             /* nodes; a look that foresees more, or takes twice as many, gives up */
    const uint32_t *by_partition; /* allowed nodes of each partition; NULL: all of its nodes */
} sl_scan_goal;

/* Bytes of scratch for a search for k. */
size_t sl_scan_allowed_scratch(const sl_graph *graph, size_t k);

/* Leaves candidates in the walk's pool. The walk has been asked the query, and the index has partitions. Returns
 * 0, or how many more nodes would have to be compared where they are too many. The pool then has the best of the
 * nearest partitions. */
size_t sl_scan_allowed_partitions(sl_walk *walk, const sl_search_params *params, const sl_allowed *allowed,
                                  const sl_scan_goal *wanted, sl_query query, uint8_t *scratch);

/* Writes allowed nodes of the nearest partitions, up to SL_SEEDS. `seeds` has room for 65 more. Returns how many. */
size_t sl_allowed_seeds(sl_walk *walk, const sl_allowed *allowed, const uint32_t *by_partition, sl_query query,
                        uint8_t *scratch, uint32_t *seeds);

/* Leaves the `keep` best of all allowed nodes in the pool. */
void sl_scan_all_allowed(sl_walk *walk, const sl_search_params *params, const sl_allowed *allowed, size_t keep);

#endif
