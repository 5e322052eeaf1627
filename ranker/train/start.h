/* Beginning a training with a model that is there: its fitted features, and its weights. */
#ifndef SL_RANKER_TRAIN_START_H
#define SL_RANKER_TRAIN_START_H

#include "ranker/model/model.h"

/* Copies fitted features, for a spec that fits other rows no more. `text` NULL: the features' own spec.
 * Parameters: params has been read with its defaults. Its epochs and seed replace the spec's where they are set.
 * Errors: SL_EINVAL (the spec; or its label, features or parts are others). */
sl_status sl_start_features(const char *text, const sl_features *from, const sl_train_params *params,
                            sl_features **out);

/* Checks that a model's layers and tables are floats: a training begins with nothing else. Errors: SL_EINVAL. */
sl_status sl_start_check_floats(const sl_ranker *from);

/* Checks that a model of these features has the layers of the ranker. Errors: SL_EINVAL. */
sl_status sl_start_check(const sl_features *features, const sl_ranker *from);

#endif
