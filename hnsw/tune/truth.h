/* The true neighbours of the queries. */
#ifndef SL_HNSW_TUNE_TRUTH_H
#define SL_HNSW_TUNE_TRUTH_H

#include "hnsw/tune/tuning.h"

/* Fills the task's truth from ids, best first. If ids is NULL, finds the truth by scoring all vectors. Scoring counts
 * as `units` of progress. Errors: SL_EINVAL, SL_ENOTFOUND, SL_EVALUE, SL_ENOMEM, SL_ECANCELED. */
sl_status sl_tune_truth(sl_tune_task *task, const uint64_t *ids, uint64_t units);

/* Refuses a given truth that can't be that of the index's vectors: no target is reached, and hits are as rare as by
 * chance. With such a truth, the settings would report that the graph limits recall. Errors: SL_EINVAL, SL_EUNSUPPORTED
 * (codes lose the nearest). */
sl_status sl_tune_check_truth(const sl_tune *tune);

/* Samples whether codes lose at least a tenth of the nearest neighbours. */
sl_status sl_tune_codes_lose(const sl_index *index, sl_resolution *found, int *lose);

#endif
