/* What tuning is made of: passes of all queries at one setting, recall as a curve, choosing, and judging. */
#ifndef SL_HNSW_TUNE_TUNE_H
#define SL_HNSW_TUNE_TUNE_H

#include "hnsw/search/searcher.h"
#include "hnsw/search/settings.h"

/* Depths of re-ranking that are measured, the last of which is everything a walk finds. */
#define SL_TUNE_DEPTHS 13u

/* Passes, at most: over ef, in steps of 1.41 up to SL_MAX_EF; closing in on a target; and on it with a stop. */
#define SL_TUNE_LADDER      34u
#define SL_TUNE_ROUNDS      6u
#define SL_TUNE_STOP_ROUNDS 8u

/* Curves over stop have it in such steps. */
#define SL_STOP_STEP (1.0 / 65536)

/* What a pass found with one depth of re-ranking. */
typedef struct sl_tune_point {
    size_t at;            /* the knob that is turned along a curve: ef, or stop in SL_STOP_STEP */
    double recall, error; /* mean over the queries, and its standard error */
    double evaluations;   /* a query, mean */
} sl_tune_point;

/* What one thread found in a pass. */
typedef struct sl_tune_tally {
    uint64_t hits[SL_TUNE_DEPTHS], squares[SL_TUNE_DEPTHS]; /* of a query's hits */
    uint64_t evaluations;
} sl_tune_tally;

/* The queries with their answers, and what asks them. */
typedef struct sl_tune_task {
    sl_index *index;
    const uint8_t *queries;
    sl_dtype dtype;
    size_t nq, stride, k;
    size_t depths[SL_TUNE_DEPTHS]; /* rising */
    size_t depth_count;
    uint64_t *truth;         /* (nq, k) nodes above their rank, each row rising */
    sl_searcher **searchers; /* one a thread */
    size_t threads, max_ef;
    /* Of the last pass, with the depth it watched. */
    uint64_t *ranks;        /* k a thread: hits by the smallest k for which they are hits, less one */
    uint32_t *hits;         /* of each query */
    sl_tune_tally *tallies; /* one a thread */
    size_t passes;
    sl_progress progress;
} sl_tune_task;

/* What a pass asks with. */
typedef struct sl_tune_asked {
    size_t ef;
    double stop;
    size_t watched; /* the number of a depth */
    int only;       /* that depth alone is measured */
} sl_tune_asked;

/* measure.c. The task's fields up to depth_count, threads and max_ef are set, the rest is zero; freed also where
 * this fails. Errors: SL_ENOMEM. */
sl_status sl_tune_task_init(sl_tune_task *task);
void sl_tune_task_free(sl_tune_task *task);

/* measure.c: asks every query once. out: a point for each depth, or one for the only one, but for `at`. Errors:
 * those of a search; SL_ECANCELED. */
sl_status sl_tune_pass(sl_tune_task *task, const sl_tune_asked *asked, sl_tune_point *out);
/* measure.c: of the last pass, the smallest k such that recall was at least `recall` from it up to the task's k;
 * that k itself where it was not even there. */
size_t sl_tune_least_k(const sl_tune_task *task, double recall);
/* measure.c: share of the true neighbours among all that walks with this ef keep. */
sl_status sl_tune_coverage(sl_tune_task *task, size_t ef, double *share);

/* measure.c: rank of a node among the k true neighbours of a query, a row of the task's truth; k where it is none
 * of them. */
size_t sl_tune_true_rank(const uint64_t *row, size_t k, uint32_t node);
/* measure.c: recall, its error and evaluations a query from sums over all queries: of hits, of their squares, and
 * of evaluations; `at` is 0. */
sl_tune_point sl_tune_point_of(const sl_tune_task *task, uint64_t hits, uint64_t squares, uint64_t evaluations);

/* truth.c: fills the task's truth from ids, best first, or by comparing everything where they are NULL; the
 * latter counts as `units` of the progress. Errors: SL_EINVAL, SL_ENOTFOUND, SL_EVALUE, SL_ENOMEM, SL_ECANCELED. */
sl_status sl_tune_truth(sl_tune_task *task, const uint64_t *ids, uint64_t units);

#define SL_CURVE_POINTS 256

/* Recall over ef, or over stop, measured at some points; between them it is taken to rise, as a straight line of the
 * logarithms of these and of the odds of a hit. */
typedef struct sl_curve {
    double hits; /* neighbours asked for in a pass: no odds are counted higher than one miss in twice as many */
    sl_tune_point points[SL_CURVE_POINTS]; /* in rising order of `at` */
    size_t count;
} sl_curve;

/* curve.c: adds a point, in place of one at the same place. Nothing happens where the curve is full. */
void sl_curve_add(sl_curve *curve, const sl_tune_point *point);
/* The point at this place, or NULL. */
const sl_tune_point *sl_curve_at(const sl_curve *curve, size_t at);
/* Where the curve first comes to this recall: all fields as they are to be expected there, `at` rounded up. 0 where it
 * does not. */
int sl_curve_find(const sl_curve *curve, double recall, sl_tune_point *out);
/* The logarithm of the odds of a hit, kept finite. */
double sl_curve_log_odds(const sl_curve *curve, double recall);

/* All of one tuning. */
typedef struct sl_tune {
    sl_tune_task task;
    sl_tune_params params;
    double targets[SL_MAX_TARGETS]; /* rising */
    size_t count;
    double row_cost;  /* of re-ranking a row, in evaluations */
    uint64_t planned; /* of the progress: what is over once the step under way is */
    sl_curve *curves; /* over ef, one a depth; behind them one over stop, of the target under way */
    uint32_t *alone;  /* hits of each query by ef alone, at the target under way */
    /* The last stop that was settled and its recall, where the next search for one begins. */
    double stop, stop_recall;
    sl_tuned_record records[SL_MAX_TARGETS];
} sl_tune;

/* truth.c: SL_EINVAL where the truth that was given cannot be that of the index's vectors: no target is reached,
 * and no more of it is found than chance finds. Such settings would tell of a bad graph. */
sl_status sl_tune_judge_truth(const sl_tune *tune);

/* The recall to ask for so that other queries meet the target, from the error of a point near it. */
double sl_tune_aim(double target, const sl_tune_point *near);
/* Where the curve meets the target, with the margin if it comes so far. */
int sl_tune_meet(const sl_curve *curve, double target, sl_tune_point *out);
/* What a point is compared by: evaluations, and re-ranked rows as many evaluations as they cost. */
double sl_tune_cost(const sl_tune *tune, size_t depth, size_t ef, double evaluations);
/* Says that a step of so many passes is over, for the progress. */
void sl_tune_step_over(sl_tune *tune, uint64_t passes);

/* depth.c: follows recall over ef, for all depths at once, until the highest target is met. */
sl_status sl_tune_follow(sl_tune *tune);
/* depth.c: finds the cheapest ef and depth for target t, and fills its record. */
sl_status sl_tune_settle(sl_tune *tune, size_t t);

/* stop.c: given the record of target t by ef alone and the hits of its pass, takes a stop in its place where that
 * is cheaper and no worse. */
sl_status sl_tune_stop(sl_tune *tune, size_t t, size_t depth);

/* probes.c: how many partitions batches must scan for the targets that are reached, where that is cheaper than
 * walks; into the records. Errors: SL_ENOMEM, SL_ECANCELED. */
sl_status sl_tune_probes(sl_tune *tune);

/* gate.c: whether searches that found with[q] of the k true neighbours of query q serve the hard queries no worse
 * than those that found alone[q], of all queries and of each half of them. */
int sl_tune_gate(const uint32_t *alone, const uint32_t *with, size_t nq, size_t k);

#endif
