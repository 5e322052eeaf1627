/* A searcher's results: their public scores, and the work they took. */
#ifndef SL_HNSW_SEARCH_RESULTS_H
#define SL_HNSW_SEARCH_RESULTS_H

#include "hnsw/search/searcher_state.h"

/* The results of a searcher's last search as nodes with scores, best first. Larger scores are nearer under every
 * metric. They lie in the searcher's memory and are valid until its next search. */
typedef struct sl_results {
    const sl_top_entry *nodes;
    size_t count; /* at most k */
} sl_results;

/* Converts a result's score to the public one: a distance under L2. */
static inline float sl_public_score(const sl_graph *graph, double score) {
    /* 0 - score is never -0 */
    return (float)(graph->codec.metric == SL_METRIC_L2 ? 0 - score : score);
}

/* Returns whether a public score lies within the radius. False for NaN. */
static inline int sl_public_score_reaches(const sl_graph *graph, float score, double radius) {
    return graph->codec.metric == SL_METRIC_L2 ? (double)score <= radius : (double)score >= radius;
}

/* Drops results that are worse than the threshold. */
void sl_results_cut(sl_searcher *searcher, double threshold);

/* Writes k ids and scores. Fills up with SL_NO_ID and NaN.
 * Parameters: nodes: 1: write node numbers in place of ids. scores: may be NULL. */
void sl_results_write(const sl_searcher *searcher, size_t k, int nodes, uint64_t *ids, float *scores);
size_t sl_results_count(const sl_searcher *searcher);

/* Adds the evaluations, expansions and strategy of the last search to stats. */
void sl_results_add_work(const sl_searcher *searcher, sl_search_stats *stats);
/* The same, and the number of results. */
void sl_results_add_stats(const sl_searcher *searcher, sl_search_stats *stats);

#endif
