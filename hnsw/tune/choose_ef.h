/* The cheapest ef and depth of re-ranking for each target. */
#ifndef SL_HNSW_TUNE_CHOOSE_EF_H
#define SL_HNSW_TUNE_CHOOSE_EF_H

#include "hnsw/tune/tuning.h"

/* Measures recall over rising ef, for all depths at once, until the highest target is reached. */
sl_status sl_tune_measure_ladder(sl_tune *tune);
/* Finds the cheapest ef, depth and stop for target t, and fills its record. */
sl_status sl_tune_choose_ef(sl_tune *tune, size_t t);

#endif
