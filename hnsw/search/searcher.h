/* A search from inside the library: what it found where it lies, nothing copied. */
#ifndef SL_HNSW_SEARCH_SEARCHER_H
#define SL_HNSW_SEARCH_SEARCHER_H

#include "hnsw/graph/index.h"
#include "hnsw/search/topk.h"

/* The results of a searcher's last search, best first, in the searcher's own memory: nodes with their scores, of which
 * larger ones are nearer under every metric. Good until its next search. */
typedef struct sl_found {
    const sl_top_entry *nodes;
    size_t count; /* at most k */
} sl_found;

/* As sl_searcher_search, but for where the results are. stats may be NULL. */
sl_status sl_searcher_find(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                           const sl_search_params *params, sl_found *found, sl_search_stats *stats);

/* The results that the searcher's last search would have had with this `rerank`, no larger than it had; `query` and k
 * are the same. The walk is not made again. */
void sl_searcher_rerank(sl_searcher *searcher, const void *query, size_t k, size_t rerank, sl_found *found);

/* The score of a result as the public functions give it. */
static inline float sl_score_of(const sl_index *index, double score) {
    /* Not -0 for a distance of 0. */
    return (float)(index->codec.metric == SL_METRIC_L2 ? 0 - score : score);
}

/* How deep a search with a filter may go, up to the room it was made with. */
void sl_searcher_limit(sl_searcher *searcher, size_t deepest);

/* The max_ef it was made with. */
size_t sl_searcher_room(const sl_searcher *searcher);
/* The ef that its walks have room for: more, where it has walked among deleted nodes. */
size_t sl_searcher_depth(const sl_searcher *searcher);

/* For batches that find candidates by other ways than a walk. A query that has passed sl_vector_check, in the form the
 * codes want, until the searcher's next; ranking asks it anew. */
void sl_searcher_ask(sl_searcher *searcher, const void *query, sl_dtype dtype);
const sl_query_code *sl_searcher_query(const sl_searcher *searcher);
/* How many candidates are ranked; the searcher must have been made for as many. */
size_t sl_rerank_count(const sl_index *index, size_t k, const sl_search_params *params);
/* Ranks what a scan found as a search would what a walk found; how many results there are. */
void sl_searcher_rank(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                      const sl_search_params *params, const sl_scan *found);
/* Memory of at least `size` bytes that stays the searcher's, of any content. */
sl_status sl_searcher_scratch(sl_searcher *searcher, size_t size, uint8_t **out);
size_t sl_searcher_results(const sl_searcher *searcher);

/* A walk for one query with parameters that sl_searcher_find would have found no fault with, ranked. */
sl_status sl_searcher_run(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                          const sl_search_params *params);
/* Adds what the last walk evaluated and expanded. */
void sl_searcher_count(const sl_searcher *searcher, sl_search_stats *stats);

#endif
