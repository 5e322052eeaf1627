/* A model as sections of a file: what a saved model and a checkpoint have in common. */
#ifndef SL_RANKER_MODEL_FILE_H
#define SL_RANKER_MODEL_FILE_H

#include "ranker/model.h"

enum { SL_MODEL_SECTIONS = 5 };

/* Sections SPEC to DENSE of a model into sections[SL_MODEL_SECTIONS]; their number is returned. `features_data` is what
 * sl_features_write gave. */
size_t sl_model_describe(const sl_features *features, const void *features_data, size_t features_size,
                         const sl_weights *weights, const sl_weights_layout *layout, sl_section_source *sections);

/* The weights of a file into the block of `weights`, which has been made for `layout`. Errors: SL_ECORRUPT. */
sl_status sl_model_read_weights(const sl_store *store, const sl_weights_layout *layout, sl_weights *weights);

/* SL_ECORRUPT unless the sections of the weights have the sizes of the layout. */
sl_status sl_model_check_sizes(const sl_store *store, const sl_weights_layout *layout);

/* The model that an open file holds. Errors: SL_ECORRUPT, SL_EVERSION, SL_ENOMEM. */
sl_status sl_model_open(const sl_store *store, const sl_allocator *allocator, sl_ranker **out);

#endif
