/* A model as sections of a file. Saved models and checkpoints have the same sections. */
#ifndef SL_RANKER_MODEL_MODEL_FILE_H
#define SL_RANKER_MODEL_MODEL_FILE_H

#include "ranker/model/model.h"

enum { SL_MODEL_SECTIONS = 7 };

/* Describes a model's sections SPEC to DENSE, or LAYERS, and those of coded tables. Returns their number.
 * Parameters: `sections` has room for SL_MODEL_SECTIONS. `features_data` comes from sl_features_write. coded NULL: all
 * layers are floats. */
size_t sl_model_describe(const sl_features *features, const void *features_data, size_t features_size,
                         const sl_weights *weights, const sl_weights_layout *layout, const sl_coded_layers *coded,
                         sl_section_source *sections);

/* Reads a file's weights into the block of `weights`, which was made for `layout`. Errors: SL_ECORRUPT. */
sl_status sl_model_read_weights(const sl_store *store, const sl_weights_layout *layout, sl_weights *weights);

/* Checks that the weights' sections have the sizes of the layout. Errors: SL_ECORRUPT. */
sl_status sl_model_check_sizes(const sl_store *store, const sl_weights_layout *layout);

/* Makes the ranker of an open file. Errors: SL_ECORRUPT, SL_EVERSION, SL_ENOMEM. */
sl_status sl_model_open(const sl_store *store, const sl_allocator *allocator, sl_ranker **out);

#endif
