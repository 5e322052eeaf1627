/* A checkpoint: the state of a training in a file. The file is a model file with one more section, TRAINER. A training
 * with layers in INT8 adds RANGES. */
#ifndef SL_RANKER_TRAIN_CHECKPOINT_H
#define SL_RANKER_TRAIN_CHECKPOINT_H

#include "ranker/train/train_state.h"
#include "storage/store.h"

/* A checkpoint's path, and memory to assemble its sections. The caller owns it. */
typedef struct sl_checkpoint sl_checkpoint;

/* Prepares checkpoints of this training. Neither reads nor writes the file.
 * Parameters: params names the path, and the precision that a resumed checkpoint must have. The checkpoint keeps params
 * without a copy. The trainer is complete, and its rows do not change. */
sl_status sl_checkpoint_create(const sl_train_params *params, const sl_trainer *trainer, sl_checkpoint **out);
void sl_checkpoint_free(sl_checkpoint *checkpoint);

/* Writes the state to the file, whole or not at all. Of several ranks, rank 0 writes, and all succeed or fail.
 * Errors: SL_EVALUE (a weight is not finite: the file stays as it is), errors of a save. */
sl_status sl_checkpoint_write(sl_checkpoint *checkpoint, sl_trainer *trainer);
/* Sets the trainer's state from the file. *found is 0 if there is no such file. Of several ranks, rank 0 reads, and all
 * get the state.
 * Errors: SL_EFORMAT (a finished model, or another training's checkpoint), SL_ECORRUPT, errors of an open. */
sl_status sl_checkpoint_read(sl_checkpoint *checkpoint, sl_trainer *trainer, int *found);

/* Checks section TRAINER of an open file without a trainer: its counts, and that its numbers are finite.
 * Errors: SL_ECORRUPT, SL_ENOMEM. */
sl_status sl_checkpoint_check(const sl_store *store, const sl_file_section *section, const sl_allocator *allocator);

#endif
