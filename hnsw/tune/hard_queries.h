/* Whether a cheaper way of searching serves the hard queries no worse. */
#ifndef SL_HNSW_TUNE_HARD_QUERIES_H
#define SL_HNSW_TUNE_HARD_QUERIES_H

#include <stddef.h>
#include <stdint.h>

/* Whether searches that found with[q] of the k true neighbours of query q serve the hard queries no worse than
 * those that found alone[q]. Both halves of the queries are judged as well as all of them. */
int sl_tune_is_no_worse(const uint32_t *alone, const uint32_t *with, size_t nq, size_t k);

#endif
