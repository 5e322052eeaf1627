/* The loop of a training: epochs of steps, validation, stopping early, checkpoints when they are due. */
#ifndef SL_RANKER_TRAIN_TRAIN_LOOP_H
#define SL_RANKER_TRAIN_TRAIN_LOOP_H

#include "ranker/train/checkpoint.h"
#include "ranker/train/train_step.h"

/* A run of the loop. The caller sets the first three fields, owns what they point at, and leaves the rest at 0. */
typedef struct sl_train_loop {
    sl_trainer *trainer;
    sl_checkpoint *checkpoint;     /* NULL: no checkpoints */
    const sl_train_params *params; /* callbacks, and how often a checkpoint is due */
    sl_progress progress;
    double train_s; /* seconds spent in steps */
    uint64_t rows_done, epochs_done;
} sl_train_loop;

/* Trains from the trainer's position on to the end.
 * Errors: SL_EVALUE (a loss or a weight is not finite), SL_ECANCELED, those of a checkpoint's save. */
sl_status sl_train_loop_run(sl_train_loop *loop);

/* Sets valid_loss and valid_auc by the present weights: the mean loss of the validation rows by their weights, and
 * under logistic loss their AUC. NaN where there are no such rows; AUC too where labels were not read. */
sl_status sl_train_validate(sl_trainer *trainer, sl_epoch *epoch);

#endif
