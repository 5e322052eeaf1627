/* The parts of the model that a row touches a few weights of: embeddings and the wide part. */
#ifndef SL_RANKER_SPARSE_H
#define SL_RANKER_SPARSE_H

#include "ranker/features.h"

/* The deep part's inputs of rows: dense columns copied, embeddings gathered (bags combined), of the sides in the mask.
 * out: rows of `stride` floats, column deep_at - first of each feature (`first`: deep_side[] of the first side wanted).
 * embeddings: a pointer a table. Prefetches ahead. */
void sl_deep_inputs(const sl_features *features, const float *const *embeddings, const sl_encoded *rows,
                    size_t first_row, size_t count, unsigned sides, size_t first, size_t stride, float *out);

/* out (count, outputs) += the wide part's sums of the sides in the mask, without the bias. */
void sl_wide_sums(const sl_features *features, const float *wide, const sl_encoded *rows, size_t first_row,
                  size_t count, unsigned sides, float *out);

#endif
