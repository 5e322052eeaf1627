/* Re-ranking: scores the best candidates again by the finest data of their vectors. These scores become the results'.
 */
#ifndef SL_HNSW_SEARCH_RERANK_H
#define SL_HNSW_SEARCH_RERANK_H

#include "hnsw/search/results.h"

/* Returns how many candidates a search for k results re-ranks. The searcher needs room for them. */
size_t sl_rerank_count(const sl_graph *graph, size_t k, const sl_search_params *params);

/* Turns the best of the pool into results. Scores them again if the index has finer data than the walk read. */
void sl_rerank_pool(sl_searcher *searcher, const void *query, size_t k, const sl_search_params *params);
/* Re-ranks the hits of a scan as sl_rerank_pool does the candidates of a walk. */
void sl_rerank_scan(sl_searcher *searcher, sl_query query, size_t k, const sl_search_params *params,
                    const sl_scan *found);
/* Re-ranks the candidates that are still in the pool, for the last search's query.
 * Parameters: rerank: at most the depth of the search that filled the pool. */
void sl_rerank_again(sl_searcher *searcher, const void *query, size_t k, size_t rerank, sl_results *found);

/* Computes the scores that nodes get as results; larger is nearer under every metric. A damaged row may score NaN.
 * Parameters: walk_scores: the walk's scores of the nodes; NULL if the index has finer data. count: up to
 * SL_RESULT_BLOCK. */
enum { SL_RESULT_BLOCK = 256 };
void sl_result_scores(const sl_searcher *searcher, const void *query, const uint32_t *nodes, const float *walk_scores,
                      size_t count, double *out);
/* Prefetches the memory that sl_result_scores reads. */
void sl_result_prefetch(const sl_searcher *searcher, uint32_t node);

#endif
