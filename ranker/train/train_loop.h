/* The loop of a training: epochs of steps, validation, early stopping, checkpoints. */
#ifndef SL_RANKER_TRAIN_TRAIN_LOOP_H
#define SL_RANKER_TRAIN_TRAIN_LOOP_H

#include "ranker/train/checkpoint.h"
#include "ranker/train/train_step.h"

/* One training. The caller sets the first three fields, owns what they point to, and zeroes the rest. */
typedef struct sl_train_loop {
    sl_trainer *trainer;
    sl_checkpoint *checkpoint;     /* NULL: no checkpoints */
    const sl_train_params *params; /* callbacks, and steps between checkpoints */
    sl_progress progress;
    double train_s; /* seconds spent in steps */
    uint64_t rows_done, epochs_done;
} sl_train_loop;

/* Trains from the trainer's position to the end.
 * Errors: SL_EVALUE (a loss or a weight is not finite), SL_ECANCELED, errors of saving a checkpoint. */
sl_status sl_train_loop_run(sl_train_loop *loop);

/* Sets valid_loss and valid_auc for the present weights. valid_loss is the weighted mean loss of the validation rows.
 * valid_auc is their AUC under logistic loss.
 * Both are NaN without validation rows. valid_auc is NaN if labels were not read. */
sl_status sl_train_validate(sl_trainer *trainer, sl_epoch *epoch);

#endif
