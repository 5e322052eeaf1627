/* Warm start: training begins with the features and weights of an existing model. */
#ifndef SL_RANKER_TRAIN_WARM_START_H
#define SL_RANKER_TRAIN_WARM_START_H

#include "ranker/model/model.h"

/* Copies fitted features for a new spec, without fitting them again. `text` NULL: the features' own spec.
 * Parameters: params comes from sl_train_read_params. Nonzero epochs and seed replace the spec's.
 * Errors: SL_EINVAL (a bad spec, or a spec with another label, features or parts). */
sl_status sl_warm_start_features(const char *text, const sl_features *from, const sl_train_params *params,
                                 sl_features **out);

/* Checks that a model's layers and tables are floats. Training starts from nothing else. Errors: SL_EINVAL. */
sl_status sl_warm_start_check_floats(const sl_ranker *from);

/* Checks that the deep part of these features has the ranker's layers. Errors: SL_EINVAL. */
sl_status sl_warm_start_check(const sl_features *features, const sl_ranker *from);

#endif
