/* How many partitions searches scan in place of walking. */
#ifndef SL_HNSW_TUNE_CHOOSE_PROBES_H
#define SL_HNSW_TUNE_CHOOSE_PROBES_H

#include "hnsw/tune/tuning.h"

/* Finds how many partitions searches must scan for each target, where that is cheaper than walks, or reaches
 * what walks do not. The numbers go into the records. Errors: SL_ENOMEM, SL_ECANCELED. */
sl_status sl_tune_choose_probes(sl_tune *tune);

#endif
