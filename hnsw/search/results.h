/* The results of a searcher's last search: their scores as the public functions give them, and the work they took. */
#ifndef SL_HNSW_SEARCH_RESULTS_H
#define SL_HNSW_SEARCH_RESULTS_H

#include "hnsw/search/searcher_state.h"

/* The results of a searcher's last search, best first: nodes with their scores. Larger scores are nearer under every
 * metric. The results lie in the searcher's memory and are valid until its next search. */
typedef struct sl_results {
    const sl_top_entry *nodes;
    size_t count; /* at most k */
} sl_results;

/* Returns the score of a result as the public functions give it. */
static inline float sl_public_score(const sl_graph *graph, double score) {
    /* Not -0 for a distance of 0. */
    return (float)(graph->codec.metric == SL_METRIC_L2 ? 0 - score : score);
}

/* Tells whether a public score is at least as near as another. A score that is no number is not. */
static inline int sl_public_score_reaches(const sl_graph *graph, float score, double radius) {
    return graph->codec.metric == SL_METRIC_L2 ? (double)score <= radius : (double)score >= radius;
}

/* Leaves results that are worse than the threshold out. */
void sl_results_cut(sl_searcher *searcher, double threshold);

/* Writes the results of the last search, filled up to k. ids get numbers of nodes where `nodes` is set. */
void sl_results_write(const sl_searcher *searcher, size_t k, int nodes, uint64_t *ids, float *scores);
size_t sl_results_count(const sl_searcher *searcher);

/* Adds to stats what the last walk evaluated and expanded. */
void sl_results_add_work(const sl_searcher *searcher, sl_search_stats *stats);
/* Adds to stats what the last search found, evaluated and expanded. */
void sl_results_add_stats(const sl_searcher *searcher, sl_search_stats *stats);

#endif
