/* The state of one tuning, and what its steps compare by. */
#ifndef SL_HNSW_TUNE_TUNING_H
#define SL_HNSW_TUNE_TUNING_H

#include "hnsw/search/settings.h"
#include "hnsw/tune/curve.h"
#include "hnsw/tune/pass.h"

/* The most passes: over ef, in steps of 1.41 up to SL_MAX_EF; closing in on a target; and closing in with a stop. */
#define SL_TUNE_LADDER      34u
#define SL_TUNE_ROUNDS      6u
#define SL_TUNE_STOP_ROUNDS 8u

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

/* Returns the recall to ask for so that other queries meet the target, by the error of a point near it. */
double sl_tune_target_with_margin(double target, const sl_tune_point *near);
/* Finds where the curve meets the target, with the margin if the curve comes so far. */
int sl_tune_expect(const sl_curve *curve, double target, sl_tune_point *out);
/* Returns what points are compared by: evaluations, and re-ranked rows as evaluations that they cost. */
double sl_tune_cost(const sl_tune *tune, size_t depth, size_t ef, double evaluations);
/* Says that a step of so many passes is over, for the progress. */
void sl_tune_end_step(sl_tune *tune, uint64_t passes);

#endif
