/* One exact search over a base that the ranks have in parts. */
#ifndef SL_CLUSTER_SEARCH_MERGE_EXACT_H
#define SL_CLUSTER_SEARCH_MERGE_EXACT_H

#include "cluster/comm/comm.h"

#include <shortlist.h>

/* Merges what the ranks' scans found for the same nq queries, each in its own part of the base. Every rank merges its
 * share of the queries, and rank 0 gets all results: the same as those of one scan over the whole base.
 * Parameters:
 *   exact        this rank's scan. It holds the merged results of some queries afterwards, so it is of no more use
 *   ids, scores  (nq, k), on rank 0 alone
 * Memory: 16 bytes per entry sent, as much for those received, and 12 bytes per result. Errors: SL_ENOMEM, SL_EIO. */
sl_status sl_merge_exact(const sl_comm *comm, sl_exact *exact, size_t nq, size_t k, uint64_t *ids, float *scores);

#endif
