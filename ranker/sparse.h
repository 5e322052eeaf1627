/* The parts of the model that a row touches a few weights of: embeddings and the wide part. */
#ifndef SL_RANKER_SPARSE_H
#define SL_RANKER_SPARSE_H

#include "ranker/features.h"
#include "ranker/loops.h"

/* The deep part's inputs of rows: dense columns copied, embeddings gathered (bags combined), of the sides in the mask.
 * out: rows of `stride` floats, column deep_at - first of each feature (`first`: deep_side[] of the first side wanted).
 * embeddings: a pointer a table. Prefetches ahead. */
void sl_deep_inputs(const sl_features *features, const float *const *embeddings, const sl_encoded *rows,
                    size_t first_row, size_t count, unsigned sides, size_t first, size_t stride, float *out);

/* out (count, outputs) += the wide part's sums of the sides in the mask, without the bias. */
void sl_wide_sums(const sl_features *features, const float *wide, const sl_encoded *rows, size_t first_row,
                  size_t count, unsigned sides, float *out);

/* ---- Training ---- */

/* State of the sparse parts' optimisers, and the scratch of a step. Layout, for checkpoints: z, then n, of the wide
 * weights (wide_size * outputs each), the same of the bias (outputs each), then one block a table, `size * dim`
 * (AdaGrad) or twice that (Adam: first moments, then second ones). Steps allocate nothing. */
typedef struct sl_sparse_trainer sl_sparse_trainer;
sl_status sl_sparse_trainer_create(const sl_features *features, size_t max_rows, size_t threads,
                                   const sl_allocator *allocator, sl_sparse_trainer **out);
void sl_sparse_trainer_free(sl_sparse_trainer *trainer);
/* One step of FTRL-proximal over the wide weights the rows touch, and the bias, which has neither L1 nor L2, from the
 * gradient of the loss by the logits (count, outputs). A weight's gradient is summed over the batch first. `rate` is
 * the spec's times the schedule's share, 1 to 0: the share scales the gradient, so that weights stand still in the end.
 */
void sl_wide_step(sl_sparse_trainer *trainer, float *wide, float *bias, const sl_encoded *rows, const float *gradient,
                  double rate);
/* One step over the embedding rows touched, from the gradient by the deep inputs (count, deep_inputs); untouched rows
 * and their moments stay as they are, and step->l2, which is the dense weights', is not applied. Tables are shared
 * among the threads, so that the result does not depend on them.
 */
void sl_embedding_step(sl_sparse_trainer *trainer, float *const *embeddings, const sl_encoded *rows,
                       const float *input_gradient, const sl_step *step);
/* Whether any step has had a gradient of this row of a table. */
int sl_sparse_is_touched(const sl_sparse_trainer *trainer, size_t table, size_t row);
/* The states as one run of floats, in a fixed order, for a checkpoint. */
size_t sl_sparse_state_size(const sl_sparse_trainer *trainer);
void sl_sparse_state_write(const sl_sparse_trainer *trainer, float *out);
void sl_sparse_state_read(sl_sparse_trainer *trainer, const float *in);

#endif
