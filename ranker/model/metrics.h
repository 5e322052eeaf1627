/* Checks of scores that training and the public metrics share. */
#ifndef SL_RANKER_MODEL_METRICS_H
#define SL_RANKER_MODEL_METRICS_H

#include <shortlist_rank.h>

/* Returns the number of rows before the first with a score that is not finite; n if there is none. */
size_t sl_finite_rows(const float *scores, size_t n, size_t outputs);

#endif
