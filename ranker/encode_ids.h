/* Values of single cells: ids, vectors, labels. */
#ifndef SL_RANKER_ENCODE_IDS_H
#define SL_RANKER_ENCODE_IDS_H

#include "ranker/encode.h"

/* Id of a category. Errors: SL_EVALUE (an identity's number out of range). */
sl_status sl_encode_key(const sl_feature *feature, sl_key *key, uint32_t *out);
/* Id of a single-valued feature's cell, bucket or categorical. */
sl_status sl_encode_id(const sl_feature *feature, const sl_column *column, size_t row, uint32_t *out);

/* A vector feature's dim floats; zeros where it is missing. Errors: SL_EVALUE, SL_EDIM, SL_EINVAL (an id, and no way to
 * look it up), and lookup's. */
sl_status sl_encode_vector(const sl_feature *feature, const sl_column *column, size_t row, sl_lookup_fn lookup,
                           void *lookup_ctx, float *out);

/* The label as the loss sees it: 0 or 1, a class's number, a value. Errors: SL_EVALUE. */
sl_status sl_encode_label(const sl_features *features, const sl_column *column, size_t row, float *out);
sl_status sl_encode_weight(const sl_column *column, size_t row, float *out);

#endif
