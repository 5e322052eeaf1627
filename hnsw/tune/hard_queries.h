/* Whether cheaper settings serve the hard queries no worse. */
#ifndef SL_HNSW_TUNE_HARD_QUERIES_H
#define SL_HNSW_TUNE_HARD_QUERIES_H

#include <stddef.h>
#include <stdint.h>

/* Whether searches that found with[q] of query q's k true neighbours serve the hard queries no worse than those that
 * found alone[q]. Judges both halves of the queries as well as all of them. */
int sl_tune_is_no_worse(const uint32_t *alone, const uint32_t *with, size_t nq, size_t k);

#endif
