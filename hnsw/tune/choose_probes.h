/* How many partitions searches scan, for targets that scans reach at a lower cost than walks. */
#ifndef SL_HNSW_TUNE_CHOOSE_PROBES_H
#define SL_HNSW_TUNE_CHOOSE_PROBES_H

#include "hnsw/tune/tuning.h"

/* Finds how many partitions searches must scan for each target, and in how many groups they choose them. Writes both
 * into the records if a scan is cheaper than walks, or reaches a target that walks miss. A single query needs as many
 * partitions as a batch, but a scan for it has another price.
 * Errors: SL_ENOMEM, SL_ECANCELED. */
sl_status sl_tune_choose_probes(sl_tune *tune);

#endif
