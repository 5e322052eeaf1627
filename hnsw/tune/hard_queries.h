/* Checks that a cheaper setting finds as much for the hard queries. */
#ifndef SL_HNSW_TUNE_HARD_QUERIES_H
#define SL_HNSW_TUNE_HARD_QUERIES_H

#include <stddef.h>
#include <stdint.h>

/* Returns whether the hard queries find no less with a cheaper setting than with ef alone, up to chance. Judges each
 * half of the queries as well as all of them. Parameters: alone, with: how many of its k true neighbours each query
 * found by ef alone, and with the cheaper setting. */
int sl_tune_is_no_worse(const uint32_t *alone, const uint32_t *with, size_t nq, size_t k);

#endif
