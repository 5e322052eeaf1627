/* Re-ranking: the best candidates get their results' scores, from the finest data of their vectors. */
#ifndef SL_HNSW_SEARCH_RERANK_H
#define SL_HNSW_SEARCH_RERANK_H

#include "hnsw/search/results.h"

/* Returns how many candidates are re-ranked for k results. The searcher needs room for as many. */
size_t sl_rerank_count(const sl_graph *graph, size_t k, const sl_search_params *params);

/* Turns the best of the pool into results. Scores them again where the index has finer data than the walk saw. */
void sl_rerank_pool(sl_searcher *searcher, const void *query, size_t k, const sl_search_params *params);
/* Re-ranks the hits of a scan as sl_rerank_pool does the candidates of a walk. */
void sl_rerank_scan(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params,
                    const sl_scan *found);
/* Re-ranks the last walk's candidates again with another `rerank`, at most the last one. The query and k are the same.
 */
void sl_rerank_again(sl_searcher *searcher, const void *query, size_t k, size_t rerank, sl_results *found);

/* Computes results' scores of nodes; larger is nearer under every metric. A damaged row may score NaN.
 * Parameters: walk_scores: the walk's scores of the nodes; NULL if the index has finer data. count: up to
 * SL_RESULT_BLOCK. */
enum { SL_RESULT_BLOCK = 256 };
void sl_result_scores(const sl_searcher *searcher, const void *query, const uint32_t *nodes, const float *walk_scores,
                      size_t count, double *out);
/* Prefetches the memory that sl_result_scores reads. */
void sl_result_prefetch(const sl_searcher *searcher, uint32_t node);

#endif
