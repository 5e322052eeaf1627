/* What a training exchanges over MPI: the library's table of calls for its ranks.
 *
 *     main thread     backward: layer 3 | layer 2 | layer 1 | layer 0 |  sparse sums  | wait | steps
 *     courier                     \\ sum of a bucket   \\ sum of the next ...           /
 *
 * A courier thread runs the sums of dense gradients while the main thread computes. Both call MPI, by turns
 * (cluster/comm/comm.h), each on a communicator of its own. */
#ifndef SL_CLUSTER_TRAIN_REDUCER_H
#define SL_CLUSTER_TRAIN_REDUCER_H

#include "cluster/allreduce/allreduce.h"

typedef struct sl_reducer sl_reducer;

/* Makes the table of calls. *table points into the reducer.
 * Parameters: `params` of the all-reduce of dense gradients, in buckets of at most `bucket` floats.
 * Errors: SL_EINVAL, SL_ENOMEM, SL_EIO. */
sl_status sl_reducer_create(const sl_comm *comm, const sl_allreduce_params *params, size_t bucket, sl_reducer **out,
                            const sl_ranks **table);
/* Every rank calls it. NULL is allowed. */
void sl_reducer_free(sl_reducer *reducer);

/* The algorithm that sums whole buckets. */
sl_allreduce_algorithm sl_reducer_algorithm(const sl_reducer *reducer);

#endif
