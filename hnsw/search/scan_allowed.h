/* Candidates of a filtered search, found without the graph. PARTITIONS scores the allowed nodes of the nearest
 * partitions, as far as the query needs. EXACT scores all allowed nodes. */
#ifndef SL_HNSW_SEARCH_SCAN_ALLOWED_H
#define SL_HNSW_SEARCH_SCAN_ALLOWED_H

#include "hnsw/search/allowed.h"
#include "hnsw/search/walk_allowed.h"

/* The goal of a filtered scan. */
typedef struct sl_scan_goal {
    size_t k;
    size_t keep;       /* candidates to leave in the pool, at least k; the pool has room for them */
    double max_missed; /* how many of the k best may be missed on average */
    size_t max_nodes;  /* the scan gives up once it predicts more nodes than this, or has scored twice as many */
    const uint32_t *by_partition; /* allowed nodes of each partition; NULL: all nodes */
} sl_scan_goal;

/* Returns the bytes of scratch that a scan for k results needs. */
size_t sl_scan_allowed_scratch(const sl_graph *graph, size_t k);

/* Leaves candidates of the nearest partitions in the walk's pool. The walk has its query, and the index has partitions.
 * Returns 0 if the scan finished. If it gave up, returns how many nodes it would still have to score. The pool then has
 * the best of the partitions scanned so far. */
size_t sl_scan_allowed_partitions(sl_walk *walk, const sl_search_params *params, const sl_allowed *allowed,
                                  const sl_scan_goal *goal, sl_query query, uint8_t *scratch);

/* Lists up to SL_SEEDS allowed nodes of the nearest partitions. Returns their number.
 * Parameters: seeds: SL_SEEDS + 65 places. */
size_t sl_allowed_seeds(sl_walk *walk, const sl_allowed *allowed, const uint32_t *by_partition, sl_query query,
                        uint8_t *scratch, uint32_t *seeds);

/* Leaves the `keep` best of all allowed nodes in the pool. */
void sl_scan_all_allowed(sl_walk *walk, const sl_search_params *params, const sl_allowed *allowed, size_t keep);

#endif
