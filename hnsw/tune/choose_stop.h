/* A stop for walks, in place of a fixed ef alone. */
#ifndef SL_HNSW_TUNE_CHOOSE_STOP_H
#define SL_HNSW_TUNE_CHOOSE_STOP_H

#include "hnsw/tune/tuning.h"

/* Takes a stop for target t in place of ef alone, where that is cheaper and no worse. The record of ef alone
 * and the hits of its pass are there. */
sl_status sl_tune_choose_stop(sl_tune *tune, size_t t, size_t depth);

#endif
