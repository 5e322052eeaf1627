/* The state of one tuning, and how its steps compare costs. */
#ifndef SL_HNSW_TUNE_TUNING_H
#define SL_HNSW_TUNE_TUNING_H

#include "hnsw/search/settings.h"
#include "hnsw/tune/curve.h"
#include "hnsw/tune/pass.h"

/* The most passes of each step: over rising ef, in steps of 1.41 up to SL_MAX_EF; closing in on a target; closing in
 * with a stop. */
#define SL_TUNE_LADDER      34u
#define SL_TUNE_ROUNDS      6u
#define SL_TUNE_STOP_ROUNDS 8u

/* The state of one tuning. */
typedef struct sl_tune {
    sl_tune_task task;
    sl_tune_params params;
    double targets[SL_MAX_TARGETS]; /* rising */
    size_t count;
    double row_cost;  /* cost of re-ranking one row, in evaluations */
    uint64_t planned; /* progress at the end of the current step */
    sl_curve *curves; /* one per depth, over ef; then one over stop, for the current target */
    uint32_t *alone;  /* hits of each query by ef alone, for the current target */
    /* The last chosen stop and its recall, at which the next search for a stop starts. */
    double stop, stop_recall;
    sl_tuned_record records[SL_MAX_TARGETS];
} sl_tune;

/* Returns the recall to aim for, so that other queries reach the target too. Its margin comes from the error of a near
 * point. */
double sl_tune_target_with_margin(double target, const sl_tune_point *near);
/* Finds where the curve reaches the target, with the margin if the curve reaches that too. Returns 0 if it doesn't
 * reach the target. */
int sl_tune_expect(const sl_curve *curve, double target, sl_tune_point *out);
/* Returns the cost of a point: its evaluations, plus its re-ranked rows converted into evaluations. */
double sl_tune_cost(const sl_tune *tune, size_t depth, size_t ef, double evaluations);
/* Ends a step that was planned to take this many passes, and reports the progress. */
void sl_tune_end_step(sl_tune *tune, uint64_t passes);

#endif
