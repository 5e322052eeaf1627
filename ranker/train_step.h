/* A step of a training: forward, then update. Both work on the trainer's current mini-batch. */
#ifndef SL_RANKER_TRAIN_STEP_H
#define SL_RANKER_TRAIN_STEP_H

#include "ranker/train_state.h"

/* Gathers the mini-batch that the position says, and computes its logits with dropout. The epoch's order has been set.
 * Changes nothing that a checkpoint holds.
 * Returns: the sum over the rows of weight * loss, and the sum of the weights. */
sl_status sl_trainer_forward(sl_trainer *trainer, double *loss_sum, double *weight_sum);
/* Computes the gradients of the last forward and steps every optimiser. */
sl_status sl_trainer_update(sl_trainer *trainer);

/* Gathers the rows with these numbers and computes their logits without dropout.
 * Parameters: count is at most minibatch_rows. */
sl_status sl_trainer_logits(sl_trainer *trainer, const uint32_t *numbers, size_t count, float *logits);

#endif
