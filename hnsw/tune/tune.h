/* The parts of tuning: passes of all queries at one setting, recall as a curve, choosing, and judging. */
#ifndef SL_HNSW_TUNE_TUNE_H
#define SL_HNSW_TUNE_TUNE_H

#include "hnsw/search/searcher.h"
#include "hnsw/search/settings.h"

/* Depths of re-ranking that are measured. The last depth is everything that a walk finds. */
#define SL_TUNE_DEPTHS 13u

/* The most passes: over ef, in steps of 1.41 up to SL_MAX_EF; closing in on a target; and closing in with a stop. */
#define SL_TUNE_LADDER      34u
#define SL_TUNE_ROUNDS      6u
#define SL_TUNE_STOP_ROUNDS 8u

/* The step of stop along a curve over it. */
#define SL_STOP_STEP (1.0 / 65536)

/* The finding of a pass with one depth of re-ranking. */
typedef struct sl_tune_point {
    size_t at;            /* the setting that changes along a curve: ef, or stop in SL_STOP_STEP */
    double recall, error; /* mean over the queries, and its standard error */
    double evaluations;   /* a query, mean */
} sl_tune_point;

/* One thread's finding in a pass. */
typedef struct sl_tune_tally {
    uint64_t hits[SL_TUNE_DEPTHS], squares[SL_TUNE_DEPTHS]; /* of a query's hits */
    uint64_t evaluations;
} sl_tune_tally;

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
    uint64_t *ranks;        /* k a thread: hits by the smallest k for which they are hits, less one */
    uint32_t *hits;         /* of each query */
    sl_tune_tally *tallies; /* one a thread */
    size_t passes;
    sl_progress progress;
} sl_tune_task;

/* The settings of a pass. */
typedef struct sl_tune_asked {
    size_t ef;
    double stop;
    size_t watched; /* the number of a depth */
    int only;       /* that depth alone is measured */
} sl_tune_asked;

/* measure.c: allocates the rest of a task. The caller has set the fields up to depth_count, threads and max_ef; the
 * others are zero. sl_tune_task_free frees the task also where this fails. Errors: SL_ENOMEM. */
sl_status sl_tune_task_init(sl_tune_task *task);
void sl_tune_task_free(sl_tune_task *task);

/* measure.c: asks every query once. `out` gets a point for each depth, or one point where `only` is set, without `at`.
 * Errors: those of a search; SL_ECANCELED. */
sl_status sl_tune_pass(sl_tune_task *task, const sl_tune_asked *asked, sl_tune_point *out);
/* measure.c: returns the smallest k of the last pass from which recall was at least `recall`, up to the task's k.
 * Returns the task's k where recall was less even there. */
size_t sl_tune_least_k(const sl_tune_task *task, double recall);
/* measure.c: measures the share of the true neighbours among all nodes that walks with this ef keep. */
sl_status sl_tune_coverage(sl_tune_task *task, size_t ef, double *share);

/* measure.c: returns the rank of a node among the k true neighbours of a query, a row of the task's truth. Returns k
 * where the node is none of them. */
size_t sl_tune_true_rank(const uint64_t *row, size_t k, uint32_t node);
/* measure.c: makes recall, its error and the evaluations a query from sums over all queries: of hits, of squared hits,
 * and of evaluations. `at` is 0. */
sl_tune_point sl_tune_point_of(const sl_tune_task *task, uint64_t hits, uint64_t squares, uint64_t evaluations);

/* truth.c: returns the node that stands for all nodes of this node's id. */
static inline uint32_t sl_tune_node(const sl_tune_task *task, uint64_t node) {
    return task->first_of ? task->first_of[node] : (uint32_t)node;
}

/* truth.c: fills the task's truth from ids, best first, or by comparing everything where ids is NULL. Comparing counts
 * as `units` of the progress. Errors: SL_EINVAL, SL_ENOTFOUND, SL_EVALUE, SL_ENOMEM, SL_ECANCELED. */
sl_status sl_tune_truth(sl_tune_task *task, const uint64_t *ids, uint64_t units);

#define SL_CURVE_POINTS 256

/* Recall over ef, or over stop, measured at some points. Between points recall is taken to rise: as a straight line of
 * the logarithm of ef or stop, and of the odds of a hit. */
typedef struct sl_curve {
    double hits; /* neighbours asked for in a pass; no odds are counted higher than one miss in twice as many */
    sl_tune_point points[SL_CURVE_POINTS]; /* in rising order of `at` */
    size_t count;
} sl_curve;

/* curve.c: adds a point, or replaces the point at the same place. Nothing happens where the curve is full. */
void sl_curve_add(sl_curve *curve, const sl_tune_point *point);
/* Returns the point at this place, or NULL. */
const sl_tune_point *sl_curve_at(const sl_curve *curve, size_t at);
/* Finds where the curve first comes to this recall: all fields as expected there, `at` rounded up. Returns 0 where it
 * does not come to it. */
int sl_curve_find(const sl_curve *curve, double recall, sl_tune_point *out);
/* Returns the logarithm of the odds of a hit, kept finite. */
double sl_curve_log_odds(const sl_curve *curve, double recall);

/* The whole state of one tuning. */
typedef struct sl_tune {
    sl_tune_task task;
    sl_tune_params params;
    double targets[SL_MAX_TARGETS]; /* rising */
    size_t count;
    double row_cost;  /* cost of re-ranking a row, in evaluations */
    uint64_t planned; /* units of the progress that are over once the step under way is */
    sl_curve *curves; /* over ef, one a depth; behind them one over stop, for the target under way */
    uint32_t *alone;  /* hits of each query by ef alone, at the target under way */
    /* The last stop that was settled, and its recall: the next search for a stop begins there. */
    double stop, stop_recall;
    sl_tuned_record records[SL_MAX_TARGETS];
} sl_tune;

/* truth.c: returns SL_EINVAL where the given truth cannot be that of the index's vectors. Then no target is reached,
 * and no more of the truth is found than chance finds. Settings from such a truth would tell of a bad graph. */
sl_status sl_tune_judge_truth(const sl_tune *tune);

/* truth.c: tells whether codes lose a tenth of the nearest or more, by a sample. */
sl_status sl_tune_codes_lose(const sl_index *index, sl_resolution *found, int *lose);

/* Returns the recall to ask for so that other queries meet the target, by the error of a point near it. */
double sl_tune_aim(double target, const sl_tune_point *near);
/* Finds where the curve meets the target, with the margin if the curve comes so far. */
int sl_tune_meet(const sl_curve *curve, double target, sl_tune_point *out);
/* Returns what points are compared by: evaluations, and re-ranked rows as evaluations that they cost. */
double sl_tune_cost(const sl_tune *tune, size_t depth, size_t ef, double evaluations);
/* Says that a step of so many passes is over, for the progress. */
void sl_tune_step_over(sl_tune *tune, uint64_t passes);

/* depth.c: follows recall over ef, for all depths at once, until the highest target is met. */
sl_status sl_tune_follow(sl_tune *tune);
/* depth.c: finds the cheapest ef and depth for target t, and fills its record. */
sl_status sl_tune_settle(sl_tune *tune, size_t t);

/* stop.c: takes a stop for target t in place of ef alone, where that is cheaper and no worse. The record of ef alone
 * and the hits of its pass are there. */
sl_status sl_tune_stop(sl_tune *tune, size_t t, size_t depth);

/* probes.c: finds how many partitions searches must scan for each target, where that is cheaper than walks, or reaches
 * what walks do not. The numbers go into the records. Errors: SL_ENOMEM, SL_ECANCELED. */
sl_status sl_tune_probes(sl_tune *tune);

/* gate.c: whether searches that found with[q] of the k true neighbours of query q serve the hard queries no worse than
 * those that found alone[q]. Both halves of the queries are judged as well as all of them. */
int sl_tune_gate(const uint32_t *alone, const uint32_t *with, size_t nq, size_t k);

#endif
