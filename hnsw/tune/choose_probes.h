/* How many partitions searches scan in place of walking. */
#ifndef SL_HNSW_TUNE_CHOOSE_PROBES_H
#define SL_HNSW_TUNE_CHOOSE_PROBES_H

#include "hnsw/tune/tuning.h"

/* Finds how many partitions searches must scan for each target, and among how many groups they choose them. Writes them
 * into the records where a scan is cheaper than walks, or reaches what walks don't. A single query needs as many as a
 * batch, but scans pay off for it at other prices. Errors: SL_ENOMEM, SL_ECANCELED. */
sl_status sl_tune_choose_probes(sl_tune *tune);

#endif
