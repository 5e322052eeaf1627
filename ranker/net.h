/* The deep part's dense layers. In a build with oneDNN its matmul primitives do the work, bias and activation fused as
 * post-ops; without it plain C does, for prediction alone. */
#ifndef SL_RANKER_NET_H
#define SL_RANKER_NET_H

#include "ranker/spec.h"

#define SL_MAX_LAYERS (SL_MAX_HIDDEN + 1)

/* Layer l maps width[l] inputs to width[l + 1] outputs; all but the last are followed by the activation. */
typedef struct sl_net_shape {
    size_t layers;
    size_t width[SL_MAX_LAYERS + 1];
    sl_activation activation;
} sl_net_shape;

/* Weights lie in one block: for each layer its (in, out) matrix, row-major, then its out biases. */
size_t sl_net_size(const sl_net_shape *shape);
size_t sl_net_weight_at(const sl_net_shape *shape, size_t layer); /* offsets into the block, in floats */
size_t sl_net_bias_at(const sl_net_shape *shape, size_t layer);

/* ---- Serving: weights reordered once to the layout the primitives want. Immutable, shared by threads. ---- */
typedef struct sl_net sl_net;
sl_status sl_net_create(const sl_net_shape *shape, const float *weights, const sl_allocator *allocator, sl_net **out);
void sl_net_free(sl_net *net);

/* One thread's scratch: buffers, primitives by batch bucket, made when first met, and one scratch pad for all of them.
 * Runs on the calling thread alone. */
typedef struct sl_net_run sl_net_run;
sl_status sl_net_run_create(const sl_net *net, size_t max_rows, const sl_allocator *allocator, sl_net_run **out);
void sl_net_run_free(sl_net_run *run);
/* (max_rows, width[0]) floats to be filled; 64-byte aligned rows are not promised. */
float *sl_net_run_input(sl_net_run *run);
/* out: (rows, outputs), before the loss's link function. rows up to max_rows. A row with a NaN or an infinity among its
 * inputs gets NaN, and no other row is affected. */
sl_status sl_net_run_forward(sl_net_run *run, size_t rows, float *out);
/* The part of layer 0 that some of its inputs have: a user's, or an item's. */
typedef struct sl_first_part {
    size_t from, count; /* inputs from to from + count */
    int with_bias;      /* whether the part's sums have the layer's bias */
} sl_first_part;
/* Computes the part's sums, without the activation: out (rows, width[1]).
 * Parameters: rows of x have part->count inputs and lie `stride` floats apart. Any number of rows. */
sl_status sl_net_run_first(sl_net_run *run, const sl_first_part *part, const float *x, size_t stride, size_t rows,
                           float *out);
/* Any number of rows, from the first layer's sums on: sums[r] = user + item[r] (+ pair[r], where pair is not NULL),
 * each of width[1] floats, item[r] being item_rows[r]; then the activation and the layers after it. Cut into tiles that
 * stay in cache.
 */
sl_status sl_net_run_rest(sl_net_run *run, const float *user, const float *const *item_rows, const float *pair,
                          size_t rows, float *out);

/* ---- Training (oneDNN only: else SL_EUNSUPPORTED) ---- */
typedef struct sl_net_trainer sl_net_trainer;
/* Buffers of max_rows; `threads` share the work of each call that is worth it. The numbers are the same in every run on
 * one machine with one build and one number of threads, and differ by rounding otherwise. One thread's. */
sl_status sl_net_trainer_create(const sl_net_shape *shape, size_t max_rows, size_t threads, double dropout,
                                const sl_allocator *allocator, sl_net_trainer **out);
void sl_net_trainer_free(sl_net_trainer *trainer);
/* Where the batch's inputs go, and where the gradient of the loss by them is found after backward: (rows, width[0]). */
float *sl_net_trainer_input(sl_net_trainer *trainer);
const float *sl_net_trainer_input_gradient(const sl_net_trainer *trainer);
/* logits: (rows, outputs). NaN among the weights is not hidden by activations. Dropout's choices depend on (seed, step)
 * alone; seed 0: none (validation). */
sl_status sl_net_trainer_forward(sl_net_trainer *trainer, const float *weights, size_t rows, uint64_t seed,
                                 uint64_t step, float *logits);
/* gradient: the block of weights' layout, overwritten; of the rows of the last forward. `output_gradient`: (rows,
 * outputs). */
sl_status sl_net_trainer_backward(sl_net_trainer *trainer, const float *weights, const float *output_gradient,
                                  float *gradient);

/* Whether this build has oneDNN. */
int sl_net_has_onednn(void);

#endif
