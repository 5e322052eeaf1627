/* One pass: all queries are searched with the same settings, and their recall is measured. */
#ifndef SL_HNSW_TUNE_PASS_H
#define SL_HNSW_TUNE_PASS_H

#include "hnsw/search/searcher.h"
#include "hnsw/tune/curve.h"

/* Depths of re-ranking that are measured. The last depth is everything that a walk finds. */
#define SL_TUNE_DEPTHS 13u

/* One thread's finding in a pass. */
typedef struct sl_pass_sums {
    uint64_t hits[SL_TUNE_DEPTHS], squares[SL_TUNE_DEPTHS]; /* of a query's hits */
    uint64_t evaluations;
} sl_pass_sums;

/* The queries, the true answers, and the searchers that ask the queries. */
typedef struct sl_tune_task {
    sl_index *index;
    const uint8_t *queries;
    sl_dtype dtype;
    size_t nq, stride, k;
    size_t depths[SL_TUNE_DEPTHS]; /* rising */
    size_t depth_count;
    uint64_t *truth;         /* (nq, k) nodes above their rank, each row rising */
    uint32_t *first_of;      /* node -> the node that stands for all of its id; NULL: each stands for itself */
    sl_searcher **searchers; /* one a thread */
    size_t threads, max_ef;
    /* Findings of the last pass, by the depth it watched. */
    uint64_t *ranks;       /* k a thread: hits by the smallest k for which they are hits, less one */
    uint32_t *hits;        /* of each query */
    sl_pass_sums *tallies; /* one a thread */
    size_t passes;
    sl_progress progress;
} sl_tune_task;

/* The settings of a pass. */
typedef struct sl_pass_settings {
    size_t ef;
    double stop;
    size_t watched; /* the number of a depth */
    int only;       /* that depth alone is measured */
} sl_pass_settings;

/* Allocates the rest of a task. The caller has set the fields up to depth_count, threads and max_ef; the
 * others are zero. sl_tune_task_free frees the task also where this fails. Errors: SL_ENOMEM. */
sl_status sl_tune_task_init(sl_tune_task *task);
void sl_tune_task_free(sl_tune_task *task);

/* Asks every query once. `out` gets a point for each depth, or one point where `only` is set, without `at`.
 * Errors: those of a search; SL_ECANCELED. */
sl_status sl_tune_pass(sl_tune_task *task, const sl_pass_settings *asked, sl_tune_point *out);
/* Returns the smallest k of the last pass from which recall was at least `recall`, up to the task's k.
 * Returns the task's k where recall was less even there. */
size_t sl_tune_least_k(const sl_tune_task *task, double recall);
/* Measures the share of the true neighbours among all nodes that walks with this ef keep. */
sl_status sl_tune_coverage(sl_tune_task *task, size_t ef, double *share);

/* Returns the rank of a node among the k true neighbours of a query, a row of the task's truth. Returns k
 * where the node is none of them. */
size_t sl_tune_true_rank(const uint64_t *row, size_t k, uint32_t node);
/* Makes recall, its error and the evaluations a query from sums over all queries: of hits, of squared hits,
 * and of evaluations. `at` is 0. */
sl_tune_point sl_tune_point_of(const sl_tune_task *task, uint64_t hits, uint64_t squares, uint64_t evaluations);

/* Returns the node that stands for all nodes of this node's id. */
static inline uint32_t sl_tune_id_node(const sl_tune_task *task, uint64_t node) {
    return task->first_of ? task->first_of[node] : (uint32_t)node;
}

#endif
