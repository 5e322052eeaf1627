/* Sharded embedding tables: each rank steps its own rows of them, and keeps the optimiser's states of these alone.
 *
 *     row i is rank (i % ranks)'s
 *
 *     before a forward pass   rows of the mini-batch:        its owners  -> every rank that needs them
 *     after a backward pass   gradients of touched rows:     every rank  -> their owner, who adds them up and steps
 *     at the end of an epoch  all rows:                      their owner -> every rank
 *
 * So a rank's copy of another rank's row may be old, but never when it is read. This is the exchange of DLRM (Naumov et
 * al. 2019, arXiv 1906.00091), with a copy of the weights on each rank. */
#ifndef SL_RANKER_TRAIN_TABLE_SHARDS_H
#define SL_RANKER_TRAIN_TABLE_SHARDS_H

#include "ranker/train/train_state.h"

/* Fetches the rows that the mini-batch uses. Does nothing without sharded tables; the other calls too. */
sl_status sl_shards_fetch(sl_trainer *trainer);
/* Sends the gradients of touched rows to their owners. Then the sparse gradients of a sharded table are those of this
 * rank's rows, summed over all ranks. */
sl_status sl_shards_reduce(sl_trainer *trainer);
/* Gives every rank the weights of all rows. */
sl_status sl_shards_sync(sl_trainer *trainer);
/* Adds the other ranks' states of sharded tables to what sl_sparse_state_write wrote on rank 0. `states` is NULL on the
 * other ranks. */
sl_status sl_shards_gather_states(const sl_trainer *trainer, float *states);

#endif
