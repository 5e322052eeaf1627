/* The sums of several ranks. After them, every rank has the gradients of the whole mini-batch, bit for bit.
 *
 *     backward pass     layer 3 | layer 2 | layer 1 | layer 0
 *     sums                       \ bucket        \ bucket       complete: sl_trainer_reduce
 *
 * A bucket of dense gradients is summed while the backward pass computes the layers below. Sparse gradients follow:
 * each table as its touched rows or as a whole, whichever is fewer bytes. */
#ifndef SL_RANKER_TRAIN_TRAIN_REDUCE_H
#define SL_RANKER_TRAIN_TRAIN_REDUCE_H

#include "ranker/train/train_state.h"

/* Prepares the sums of a backward pass. Does nothing with one rank. */
void sl_trainer_reduce_begin(sl_trainer *trainer);
/* Waits for the sums that began, before the gradients are freed after a failure. Returns `status`. */
sl_status sl_trainer_reduce_end(sl_trainer *trainer, sl_status status);
/* Completes the sums of all gradients, losses and flags. See sl_trainer_collect. */
sl_status sl_trainer_reduce(sl_trainer *trainer);

/* Gives all ranks the INT8 ranges that rank 0 calibrated. `status`: of this rank's calibration. */
sl_status sl_trainer_share_ranges(sl_trainer *trainer, sl_status status);
/* Makes the statistics of the layers' inputs those of all ranks. */
sl_status sl_trainer_reduce_seen(sl_trainer *trainer);

/* Gives all ranks the state that rank 0 has: weights, position, and all states of optimisers but the sparse ones. */
sl_status sl_trainer_broadcast(sl_trainer *trainer);
/* Checks that all ranks have the same weights. Errors: SL_EVALUE, naming the rank. */
sl_status sl_trainer_check_same(const sl_trainer *trainer);

#endif
