/* The steps of a public call of training that pruning takes too. */
#ifndef SL_RANKER_TRAIN_TRAIN_H
#define SL_RANKER_TRAIN_TRAIN_H

#include "ranker/train/train_state.h"

/* Reads a caller's params, with the defaults. NULL: all of them. Errors: SL_EINVAL. */
sl_status sl_train_read_params(const sl_train_params *params, sl_train_params *mine);

/* Trains to the end, from the checkpoint where params asks for one, and makes the ranker. Takes the trainer over, on
 * failure too. report may be NULL. */
sl_status sl_train_to_ranker(sl_trainer *trainer, const sl_train_params *params, double read_s, sl_ranker **out,
                             sl_train_report *report);

#endif
