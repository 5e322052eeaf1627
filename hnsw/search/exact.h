/* Exact scans for callers inside the library: what a scan has found so far, with scores as exact as it knows them.
 * Scans of parts of a base become one by taking over each other's entries. */
#ifndef SL_HNSW_SEARCH_EXACT_H
#define SL_HNSW_SEARCH_EXACT_H

#include "hnsw/search/topk.h"

#include <shortlist.h>

/* Returns the entries of a query, *count of them, in no order. Under L2 a score is the negative distance. The scan owns
 * them, and the next call for it may change them. */
const sl_top_entry *sl_exact_entries(const sl_exact *exact, size_t query, size_t *count);

/* Offers a query entries of another scan, of rows that this scan has not compared. */
void sl_exact_take(sl_exact *exact, size_t query, const sl_top_entry *entries, size_t count);

/* Gives the results of `count` queries from `first` on, as sl_exact_results does for all. */
sl_status sl_exact_results_of(const sl_exact *exact, size_t first, size_t count, uint64_t *ids, float *scores);

#endif
