/* The forward pass of the sparse weights, of which a row touches a few: embeddings and the wide part. */
#ifndef SL_RANKER_MODEL_SPARSE_FORWARD_H
#define SL_RANKER_MODEL_SPARSE_FORWARD_H

#include "ranker/features/encode.h"
#include "ranker/model/table_codes.h"

/* Writes the deep part's inputs of the sides in the mask: dense columns and embeddings, with bags combined.
 * Parameters: embeddings has a pointer for each table. It is NULL for a coded table, whose rows are in `coded`. `coded`
 * may be NULL. Rows of `out` are `stride` floats apart; each begins with the first input of the lowest side in the
 * mask. */
void sl_deep_inputs(const sl_features *features, const float *const *embeddings, const sl_coded_tables *coded,
                    const sl_encoded *rows, unsigned sides, size_t stride, float *out);

/* Adds the wide part's sums of the sides in the mask to out (rows, outputs), without the bias. */
void sl_wide_sums(const sl_features *features, const float *wide, const sl_encoded *rows, unsigned sides, float *out);

#endif
