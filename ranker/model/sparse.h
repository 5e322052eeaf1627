/* The parts of the model that a row touches a few weights of: embeddings and the wide part. */
#ifndef SL_RANKER_MODEL_SPARSE_H
#define SL_RANKER_MODEL_SPARSE_H

#include "ranker/features/encode.h"
#include "ranker/model/table_codes.h"

/* Writes the deep part's inputs that come from the sides in the mask: dense columns and embeddings, bags combined.
 * Parameters: embeddings has a pointer for each table. A table that is coded has NULL there, and its rows in `coded`,
 * which may be NULL. Rows of `out` lie `stride` floats apart; each begins with the first input of the lowest side in
 * the mask. */
void sl_deep_inputs(const sl_features *features, const float *const *embeddings, const sl_coded_tables *coded,
                    const sl_encoded *rows, unsigned sides, size_t stride, float *out);

/* Adds the wide part's sums of the sides in the mask to out (rows, outputs), without the bias. */
void sl_wide_sums(const sl_features *features, const float *wide, const sl_encoded *rows, unsigned sides, float *out);

#endif
