/* The results of a searcher's last search: their scores as the public functions give them, and the work they took. */
#ifndef SL_HNSW_SEARCH_RESULTS_H
#define SL_HNSW_SEARCH_RESULTS_H

#include "hnsw/search/searcher_state.h"

/* The results of a searcher's last search, best first: nodes with their scores. Larger scores are nearer under every
 * metric. The results lie in the searcher's memory and are valid until its next search. */
typedef struct sl_found {
    const sl_top_entry *nodes;
    size_t count; /* at most k */
} sl_found;

/* Returns the score of a result as the public functions give it. */
static inline float sl_score_of(const sl_graph *graph, double score) {
    /* Not -0 for a distance of 0. */
    return (float)(graph->codec.metric == SL_METRIC_L2 ? 0 - score : score);
}

/* Tells whether a public score is at least as near as another. A score that is no number is not. */
static inline int sl_score_is_within(const sl_graph *graph, float score, double radius) {
    return graph->codec.metric == SL_METRIC_L2 ? (double)score <= radius : (double)score >= radius;
}

/* Leaves results that are worse than the threshold out. */
void sl_cut_off(sl_searcher *searcher, double threshold);

/* Writes the results of the last search, filled up to k. ids get numbers of nodes where `nodes` is set. */
void sl_searcher_write(const sl_searcher *searcher, size_t k, int nodes, uint64_t *ids, float *scores);
size_t sl_searcher_results(const sl_searcher *searcher);

/* Adds to stats what the last walk evaluated and expanded. */
void sl_searcher_count(const sl_searcher *searcher, sl_search_stats *stats);
/* Adds to stats what the last search found, evaluated and expanded. */
void sl_searcher_add_stats(const sl_searcher *searcher, sl_search_stats *stats);

#endif
