/* The true neighbours of the queries. */
#ifndef SL_HNSW_TUNE_TRUTH_H
#define SL_HNSW_TUNE_TRUTH_H

#include "hnsw/tune/tuning.h"

/* Fills the task's truth from ids, best first, or by comparing everything where ids is NULL. Comparing counts
 * as `units` of the progress. Errors: SL_EINVAL, SL_ENOTFOUND, SL_EVALUE, SL_ENOMEM, SL_ECANCELED. */
sl_status sl_tune_truth(sl_tune_task *task, const uint64_t *ids, uint64_t units);

/* Returns SL_EINVAL where the given truth cannot be that of the index's vectors. Then no target is reached,
 * and no more of the truth is found than chance finds. Settings from such a truth would tell of a bad graph. */
sl_status sl_tune_check_truth(const sl_tune *tune);

/* Tells whether codes lose a tenth of the nearest or more, by a sample. */
sl_status sl_tune_codes_lose(const sl_index *index, sl_resolution *found, int *lose);

#endif
