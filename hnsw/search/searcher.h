/* Searches for callers inside the library. The results stay in the searcher's memory. */
#ifndef SL_HNSW_SEARCH_SEARCHER_H
#define SL_HNSW_SEARCH_SEARCHER_H

#include "hnsw/search/results.h"

/* Searches as sl_searcher_search does, without copying the results out. stats may be NULL. */
sl_status sl_searcher_find(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params,
                           sl_results *found, sl_search_stats *stats);

/* Lets the searcher's next searches go on from a search of another index with the same codes. They end at a candidate
 * below `bound`, once they have expanded `after` candidates. Under a filter, and among tombstones, the bound holds for
 * each walk. -INFINITY: no bound (default). Scans of partitions have none. */
void sl_searcher_set_bound(sl_searcher *searcher, float bound, size_t after);
/* Returns the score below which the last search ended, the bound for a search of another index: that of the last
 * candidate of its beam, or that of its stop. Only after sl_searcher_note_beam. -INFINITY: the beam was not full, or
 * the search had a filter or a scan. */
void sl_searcher_note_beam(sl_searcher *searcher);
float sl_searcher_beam_score(const sl_searcher *searcher);

/* Finds the nodes where a search for this query begins; an empty range: it descends. Errors: SL_EVALUE, SL_ENOMEM. */
sl_status sl_searcher_find_start(sl_searcher *searcher, sl_query query, sl_range *start);
/* Lets the searcher's next searches begin at these nodes of an index that does not change. An empty range lets each
 * search find its own (default). Searches with a filter find their own. */
void sl_searcher_set_start(sl_searcher *searcher, sl_range start);

/* The same with parameters that are checked already. */
sl_status sl_searcher_run(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params);

#endif
