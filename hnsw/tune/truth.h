/* The true neighbours of the queries. */
#ifndef SL_HNSW_TUNE_TRUTH_H
#define SL_HNSW_TUNE_TRUTH_H

#include "hnsw/tune/tuning.h"

/* Fills the task's truth from ids, best first, or by scoring everything if ids is NULL. Scoring counts as `units` of
 * progress.
 * Errors: SL_EINVAL, SL_ENOTFOUND, SL_EVALUE, SL_ENOMEM, SL_ECANCELED. */
sl_status sl_tune_truth(sl_tune_task *task, const uint64_t *ids, uint64_t units);

/* Refuses a given truth that cannot be that of the index's vectors: no target is reached, and hits are as rare as by
 * chance. Settings from such a truth would blame the graph. Errors: SL_EINVAL, SL_EUNSUPPORTED (codes lose the
 * nearest). */
sl_status sl_tune_check_truth(const sl_tune *tune);

/* Samples whether codes lose a tenth of the nearest or more. */
sl_status sl_tune_codes_lose(const sl_index *index, sl_resolution *found, int *lose);

#endif
