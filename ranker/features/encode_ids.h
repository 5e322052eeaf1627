/* Encodes single cells: ids, vectors, labels. */
#ifndef SL_RANKER_FEATURES_ENCODE_IDS_H
#define SL_RANKER_FEATURES_ENCODE_IDS_H

#include "ranker/features/encode_cells.h"

/* Gets the id of a category. Errors: SL_EVALUE (an identity out of range). */
sl_status sl_encode_key(const sl_feature *feature, sl_key *key, uint32_t *out);
/* Gets the id of a cell of a bucket or categorical feature. */
sl_status sl_encode_id(const sl_feature *feature, const sl_column *column, size_t row, uint32_t *out);

/* Gets the dim floats of a vector feature; zeros for a missing cell.
 * Errors: SL_EVALUE, SL_EDIM, SL_EINVAL (an id, but no lookup), those of lookup. */
sl_status sl_encode_vector(const sl_feature *feature, const sl_column *column, size_t row, sl_lookup_fn lookup,
                           void *lookup_ctx, float *out);

/* Gets the label in the form that the loss uses: 0 or 1, the number of a class, or a value. Errors: SL_EVALUE. */
sl_status sl_encode_label(const sl_features *features, const sl_column *column, size_t row, float *out);
sl_status sl_encode_weight(const sl_column *column, size_t row, float *out);

#endif
