/* One pass: searches all queries with the same settings, and measures recall. */
#ifndef SL_HNSW_TUNE_PASS_H
#define SL_HNSW_TUNE_PASS_H

#include "hnsw/search/searcher.h"
#include "hnsw/tune/curve.h"

/* Depths of re-ranking that a pass measures. The last depth is all that a walk finds. */
#define SL_TUNE_DEPTHS 13u

/* One thread's sums in a pass. */
typedef struct sl_pass_sums {
    uint64_t hits[SL_TUNE_DEPTHS], squares[SL_TUNE_DEPTHS]; /* sums of each query's hits, and of their squares */
    uint64_t evaluations;
} sl_pass_sums;

/* The queries, their true neighbours, and the searchers. */
typedef struct sl_tune_task {
    sl_index *index;
    const uint8_t *queries;
    sl_dtype dtype;
    size_t nq, stride, k;
    size_t depths[SL_TUNE_DEPTHS]; /* rising */
    size_t depth_count;
    uint64_t *truth;         /* (nq, k) words: node << 32 | rank; each row is rising */
    uint32_t *first_of;      /* for each node, the first node with its id; NULL: each node has its own id */
    sl_searcher **searchers; /* one per thread */
    size_t threads, max_ef;
    /* Measurements of the last pass at its watched depth. */
    uint64_t *ranks;    /* k per thread: counts of hits, by the smallest k at which a search has the hit, less one */
    uint32_t *hits;     /* of each query */
    sl_pass_sums *sums; /* one per thread */
    size_t passes;
    sl_progress progress;
} sl_tune_task;

/* The settings of a pass. */
typedef struct sl_pass_settings {
    size_t ef;
    double stop;
    size_t watched; /* number of the watched depth, whose hits are kept */
    int only;       /* 1: measures the watched depth alone */
} sl_pass_settings;

/* Allocates the rest of a task. The caller has set the fields up to depth_count, threads and max_ef, and zeroed the
 * others. Free the task even if this fails. Errors: SL_ENOMEM. */
sl_status sl_tune_task_init(sl_tune_task *task);
void sl_tune_task_free(sl_tune_task *task);

/* Searches every query once. `out` gets a point for each depth, or one point if `only` is set. The points' `at` is 0.
 * Errors: those of a search; SL_ECANCELED. */
sl_status sl_tune_pass(sl_tune_task *task, const sl_pass_settings *settings, sl_tune_point *out);
/* Returns the smallest k from which the last pass had this recall, up to the task's k. Returns the task's k if its
 * recall was lower even there. */
size_t sl_tune_least_k(const sl_tune_task *task, double recall);
/* Measures the share of the true neighbours that are among the candidates of walks with this ef. */
sl_status sl_tune_coverage(sl_tune_task *task, size_t ef, double *share);

/* Returns the rank of a node among a query's k true neighbours, or k if it isn't among them.
 * Parameters: row: the query's row of the task's truth. */
size_t sl_tune_true_rank(const uint64_t *row, size_t k, uint32_t node);
/* Computes recall, its error and the mean evaluations from sums over all queries of hits, squared hits and evaluations.
 * `at` is 0. */
sl_tune_point sl_tune_point_of(const sl_tune_task *task, uint64_t hits, uint64_t squares, uint64_t evaluations);

/* Returns the first node of this node's id. */
static inline uint32_t sl_tune_id_node(const sl_tune_task *task, uint64_t node) {
    return task->first_of ? task->first_of[node] : (uint32_t)node;
}

#endif
