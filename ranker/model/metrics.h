/* Measures that both the training loop and the public metrics use. */
#ifndef SL_RANKER_MODEL_METRICS_H
#define SL_RANKER_MODEL_METRICS_H

#include <shortlist_rank.h>

/* Returns the number of rows before the first that has a score that is not finite; n where there is none. */
size_t sl_finite_rows(const float *scores, size_t n, size_t outputs);

#endif
