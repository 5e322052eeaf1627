/* Results of the ranks' shares of queries, brought to rank 0 in order. */
#ifndef SL_CLUSTER_SEARCH_GATHER_RESULTS_H
#define SL_CLUSTER_SEARCH_GATHER_RESULTS_H

#include "cluster/comm/comm.h"

/* Brings the results of nq queries to rank 0. Rank r has those of its share (sl_comm_share), k per query.
 * Parameters: ids, scores: of this rank's share. all_ids, all_scores: (nq, k), on rank 0 alone. Errors: SL_ENOMEM,
 * SL_EIO. */
sl_status sl_gather_results(const sl_comm *comm, size_t nq, size_t k, const uint64_t *ids, const float *scores,
                            uint64_t *all_ids, float *all_scores);

#endif
