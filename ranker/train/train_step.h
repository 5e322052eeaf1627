/* A training step has three parts: forward, collect, apply. Each works on the trainer's current mini-batch.
 *
 * sl_trainer_collect sums every weight's gradient over the mini-batch and changes no weight. sl_trainer_apply changes
 * the weights by those sums. train_reduce.h adds up the sums of several ranks at the end of the collecting. */
#ifndef SL_RANKER_TRAIN_TRAIN_STEP_H
#define SL_RANKER_TRAIN_TRAIN_STEP_H

#include "ranker/train/train_state.h"

/* Switches layers to INT8 if this step is the first one in INT8. It calibrates their ranges on the first rows of the
 * epoch's order. Does nothing at other steps. Errors: see sl_ranges_calibrate. */
sl_status sl_trainer_start_ranges(sl_trainer *trainer);
/* Gathers the mini-batch at the trainer's position, and computes its logits with dropout. The caller has set the
 * epoch's order. Changes nothing that a checkpoint holds. Sets loss_sum, weight_sum, and not_finite if loss_sum is not
 * finite. */
sl_status sl_trainer_forward(sl_trainer *trainer);
/* Sums the gradients of the last forward: dense_gradient for the layers, sparse->gradients for the rest. Under FP16 it
 * divides the loss scale out again. `overflowed` says whether a gradient is not finite. The caller then skips the
 * step.
 * With several ranks all of this, and loss_sum and weight_sum, becomes the sum over the ranks. not_finite and cancelled
 * become true if they are for one rank. */
sl_status sl_trainer_collect(sl_trainer *trainer);
/* Steps every optimiser by the collected gradients. */
void sl_trainer_apply(sl_trainer *trainer);

/* Gathers the rows with these numbers and computes their logits without dropout.
 * Parameters: count is at most minibatch_rows. */
sl_status sl_trainer_logits(sl_trainer *trainer, const uint32_t *numbers, size_t count, float *logits);
/* Computes the gradient of these rows' mean loss by the layers' weights, without dropout, into dense_gradient. The
 * model has a deep part. Errors: SL_EVALUE (the loss is not finite). */
sl_status sl_trainer_gradient(sl_trainer *trainer, const uint32_t *numbers, size_t count);

#endif
