/* Steps of sl_ranker_train that sl_ranker_prune shares. */
#ifndef SL_RANKER_TRAIN_TRAIN_H
#define SL_RANKER_TRAIN_TRAIN_H

#include "ranker/train/train_state.h"

/* Copies the caller's params into mine and checks them. NULL: all defaults. Errors: SL_EINVAL. */
sl_status sl_train_read_params(const sl_train_params *params, sl_train_params *mine);

/* Trains to the end and makes the ranker. Goes on from the checkpoint if params asks for that.
 * Parameters: the call owns the trainer, and frees it on failure too. report may be NULL. */
sl_status sl_train_to_ranker(sl_trainer *trainer, const sl_train_params *params, double read_s, sl_ranker **out,
                             sl_train_report *report);

/* sl_ranker_train on several ranks. Every rank calls it with its part of the rows, and gets the same model. Rank 0
 * writes and reads the checkpoint. on NULL: this process trains alone. */
sl_status sl_train_on_ranks(const char *spec, const sl_rows *train, const sl_rows *valid, const sl_train_params *params,
                            const sl_train_ranks *on, sl_ranker **out, sl_train_report *report);

#endif
