/* Re-ranking: candidates get the scores that results have, from the finest data of their vectors. */
#ifndef SL_HNSW_SEARCH_RERANK_H
#define SL_HNSW_SEARCH_RERANK_H

#include "hnsw/search/results.h"

/* Returns how many candidates are ranked. The searcher must have been made for as many. */
size_t sl_rerank_count(const sl_graph *graph, size_t k, const sl_search_params *params);

/* Makes the pool's best the results. They are scored anew where the index has more of their vectors than the walk saw.
 */
void sl_rerank_pool(sl_searcher *searcher, const void *query, size_t k, const sl_search_params *params);
/* Ranks what a scan found as a search ranks what its walk found. */
void sl_rerank_scan(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params,
                    const sl_scan *found);
/* Ranks what the searcher's last walk found anew, as if `rerank` had been this one; the walk is not made again.
 * `rerank` is no larger than it was; `query` and k are the same. */
void sl_rerank_again(sl_searcher *searcher, const void *query, size_t k, size_t rerank, sl_results *found);

/* Gives nodes the scores that results have, larger is nearer under every metric. A score of a damaged row may be NaN.
 * Parameters: `walked`: what the walk scored them. `count`: up to SL_RESULT_BLOCK. */
enum { SL_RESULT_BLOCK = 256 };
void sl_result_scores(const sl_searcher *searcher, const void *query, const uint32_t *nodes, const float *walked,
                      size_t count, double *out);
/* Asks for the memory that sl_result_scores reads. */
void sl_result_prefetch(const sl_searcher *searcher, uint32_t node);

#endif
