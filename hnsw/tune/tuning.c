#include "hnsw/tune/tuning.h"

#include <math.h>

/* Recall differs by some standard errors between sets of queries. A target gets a margin of half an error, but at most
 * this much, so that settings from few queries don't get costly. */
#define MOST_MARGIN 0.002

void sl_tune_end_step(sl_tune *tune, uint64_t passes) {
    uint64_t done = tune->task.progress.done;
    tune->planned += passes * tune->task.nq;
    if (done < tune->planned) sl_progress_step(&tune->task.progress, tune->planned - done);
}

double sl_tune_target_with_margin(double target, const sl_tune_point *near) {
    return fmin(target + fmin(near->error / 2, MOST_MARGIN), 1);
}

int sl_tune_expect(const sl_curve *curve, double target, sl_tune_point *out) {
    sl_tune_point further;
    if (!sl_curve_find(curve, target, out)) return 0;
    if (sl_curve_find(curve, sl_tune_target_with_margin(target, out), &further)) *out = further;
    return 1;
}

double sl_tune_cost(const sl_tune *tune, size_t depth, size_t ef, double evaluations) {
    size_t rows = tune->task.depths[depth] < ef ? tune->task.depths[depth] : ef;
    return evaluations + tune->row_cost * (double)rows;
}
