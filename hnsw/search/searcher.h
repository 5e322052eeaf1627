/* A search for callers inside the library: it leaves what it found in the searcher's memory and copies nothing. */
#ifndef SL_HNSW_SEARCH_SEARCHER_H
#define SL_HNSW_SEARCH_SEARCHER_H

#include "hnsw/graph/index.h"
#include "hnsw/search/topk.h"

/* The results of a searcher's last search, best first: nodes with their scores. Larger scores are nearer under every
 * metric. The results lie in the searcher's memory and are valid until its next search. */
typedef struct sl_found {
    const sl_top_entry *nodes;
    size_t count; /* at most k */
} sl_found;

/* Searches as sl_searcher_search does, and leaves the results in the searcher. stats may be NULL. */
sl_status sl_searcher_find(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                           const sl_search_params *params, sl_found *found, sl_search_stats *stats);

/* Ranks what the searcher's last walk found anew, as if `rerank` had been this one; the walk is not made again.
 * `rerank` is no larger than it was; `query` and k are the same. */
void sl_searcher_rerank(sl_searcher *searcher, const void *query, size_t k, size_t rerank, sl_found *found);

/* Returns the score of a result as the public functions give it. */
static inline float sl_score_of(const sl_graph *graph, double score) {
    /* Not -0 for a distance of 0. */
    return (float)(graph->codec.metric == SL_METRIC_L2 ? 0 - score : score);
}

/* Tells whether a public score is at least as near as another. A score that is no number is not. */
static inline int sl_score_is_within(const sl_graph *graph, float score, double radius) {
    return graph->codec.metric == SL_METRIC_L2 ? (double)score <= radius : (double)score >= radius;
}

/* Limits how deep a search with a filter may go; the limit is at most the room that the searcher was made with. */
void sl_searcher_limit(sl_searcher *searcher, size_t deepest);

/* Returns the max_ef that the searcher was made with. */
size_t sl_searcher_room(const sl_searcher *searcher);
/* Returns the ef that the searcher's walks have room for. That is more than max_ef where the searcher has walked among
 * deleted nodes. */
size_t sl_searcher_depth(const sl_searcher *searcher);

/* For batches that find candidates without a walk. sl_searcher_ask brings a query, which has passed sl_vector_check,
 * into the codes' form. sl_searcher_query returns that form, which is valid until the searcher's next query. Ranking
 * asks the query anew. */
void sl_searcher_ask(sl_searcher *searcher, const void *query, sl_dtype dtype);
const sl_query_code *sl_searcher_query(const sl_searcher *searcher);
/* Returns how many candidates are ranked. The searcher must have been made for as many. */
size_t sl_rerank_count(const sl_graph *graph, size_t k, const sl_search_params *params);
/* Ranks what a scan found as a search ranks what its walk found. */
void sl_searcher_rank(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                      const sl_search_params *params, const sl_scan *found);
/* Gives memory of at least `size` bytes that stays the searcher's. Its content is arbitrary. */
sl_status sl_searcher_scratch(sl_searcher *searcher, size_t size, uint8_t **out);
size_t sl_searcher_results(const sl_searcher *searcher);

/* Walks and ranks for one query. sl_searcher_find would accept the parameters. */
sl_status sl_searcher_run(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                          const sl_search_params *params);
/* Adds to stats what the last walk evaluated and expanded. */
void sl_searcher_count(const sl_searcher *searcher, sl_search_stats *stats);

#endif
