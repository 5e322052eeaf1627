/* A stop for walks, in place of a fixed ef alone. */
#ifndef SL_HNSW_TUNE_CHOOSE_STOP_H
#define SL_HNSW_TUNE_CHOOSE_STOP_H

#include "hnsw/tune/tuning.h"

/* Chooses a stop for target t, if it's cheaper than ef alone and hard queries find no less with it. The caller has set
 * the record of ef alone and the hits of its pass. */
sl_status sl_tune_choose_stop(sl_tune *tune, size_t t, size_t depth);

#endif
