/* A search from inside the library: what it found where it lies, nothing copied. */
#ifndef SL_HNSW_SEARCH_H
#define SL_HNSW_SEARCH_H

#include "hnsw/graph.h"
#include "hnsw/topk.h"

/* The results of a searcher's last search, best first, in the searcher's own memory: nodes with their scores, of which
 * larger ones are nearer under every metric. Good until its next search. */
typedef struct sl_found {
    const sl_top_entry *nodes;
    size_t count; /* at most k */
} sl_found;

/* As sl_searcher_search, but for where the results are. stats may be NULL. */
sl_status sl_searcher_find(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                           const sl_search_params *params, sl_found *found, sl_search_stats *stats);

/* The score of a result as the public functions give it. */
static inline float sl_score_of(const sl_index *index, double score) {
    /* Not -0 for a distance of 0. */
    return (float)(index->codec.metric == SL_METRIC_L2 ? 0 - score : score);
}

#endif
