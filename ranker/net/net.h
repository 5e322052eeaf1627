/* The dense layers of the deep part. oneDNN's matmul primitives multiply, with bias and activation as post-ops. Builds
 * without oneDNN have plain C, for prediction only. */
#ifndef SL_RANKER_NET_NET_H
#define SL_RANKER_NET_NET_H

#include "ranker/features/spec.h"
#include "ranker/net/bf16.h"
#include "ranker/net/int8.h"

#define SL_MAX_LAYERS (SL_MAX_HIDDEN + 1)

/* Layer l maps width[l] inputs to width[l + 1] outputs. An activation follows every layer except the last. */
typedef struct sl_net_shape {
    size_t layers;
    size_t width[SL_MAX_LAYERS + 1];
    sl_activation activation;
} sl_net_shape;

/* Returns a layer's name: "dense.0" for the first. */
const char *sl_layer_name(size_t layer);
/* Finds a layer by its name. Errors: SL_ENOTFOUND. */
sl_status sl_layer_find(const sl_net_shape *shape, const char *name, size_t *out);

/* All weights are in one block. Each layer has its row-major (in, out) matrix, then its biases. */
size_t sl_net_size(const sl_net_shape *shape);
size_t sl_net_weight_at(const sl_net_shape *shape, size_t layer); /* offsets into the block, in floats */
size_t sl_net_bias_at(const sl_net_shape *shape, size_t layer);
/* Returns the multiplications per row: the number of weights without biases. */
size_t sl_net_multiply_adds(const sl_net_shape *shape);
/* Returns the largest of width[from] and later widths. */
size_t sl_net_widest(const sl_net_shape *shape, size_t from);
/* Returns the number of weights that are 0. */
size_t sl_net_zeros(const sl_net_shape *shape, const float *weights);
/* Returns whether all floats are finite. */
int sl_all_finite(const float *values, size_t count);

/* The weights of a layer, if they are not floats. INT8 weights are codes[i * out + o] * scales[o]. */
typedef enum sl_layer_type {
    SL_LAYER_F32,
    SL_LAYER_INT8,         /* inputs in u8, by a range chosen in calibration */
    SL_LAYER_INT8_DYNAMIC, /* inputs in u8, each row by the range of its own values */
    SL_LAYER_BF16          /* weights and inputs in bf16 */
} sl_layer_type;
typedef struct sl_layer_codes {
    sl_layer_type type;
    sl_int8_range input;
    const int8_t *codes;
    const float *scales;
    const uint16_t *bf16; /* (in, out), of SL_LAYER_BF16 */
} sl_layer_codes;

/* The range and scales of a layer that trains to be SL_LAYER_INT8: see net_fake.h. */
typedef struct sl_fake_layer {
    int is_int8; /* 0: a layer of floats, whose other fields are not read */
    sl_int8_range input;
    const float *scales; /* scale of each output's weights */
} sl_fake_layer;
/* Rows of floats: `count` of a layer's inputs, from input `from` on. x begins at the first of them. */
typedef struct sl_layer_inputs {
    const float *x;
    size_t stride, rows; /* floats from one row of x to the next */
    size_t from, count;
} sl_layer_inputs;

/* ---- Serving. Weights are packed once. A net does not change, and all threads may share it. ---- */
typedef struct sl_net sl_net;
/* Packs a net's weights.
 * Parameters: `codes` has an entry for each layer; NULL: all layers are floats. A layer that is not
 * floats takes only its biases from `weights`. */
sl_status sl_net_create(const sl_net_shape *shape, const float *weights, const sl_layer_codes *codes,
                        const sl_allocator *allocator, sl_net **out);
void sl_net_free(sl_net *net);

/* One thread's scratch: buffers, and products by row count, which are made when first needed and share one scratch pad.
 * It runs on the calling thread alone. */
typedef struct sl_net_run sl_net_run;
sl_status sl_net_run_create(const sl_net *net, size_t max_rows, const sl_allocator *allocator, sl_net_run **out);
void sl_net_run_free(sl_net_run *run);
/* Returns (max_rows, width[0]) floats for the caller to fill. Rows may begin at any float. */
float *sl_net_run_input(sl_net_run *run);
/* Runs the net on `rows` rows of the input, at most max_rows. out (rows, outputs) gets logits, without the link
 * function. A row with NaN or infinity among its inputs gives NaN, and affects no other row. */
sl_status sl_net_run_forward(sl_net_run *run, size_t rows, float *out);
/* A part of layer 0: some of its inputs, a user's or an item's. */
typedef struct sl_first_part {
    size_t from, count; /* inputs `from` to from + count */
    int with_bias;      /* whether its sums include the layer's bias */
} sl_first_part;
/* Computes the part's sums without the activation: out (rows, width[1]).
 * Parameters: rows of x have part->count inputs and are `stride` floats apart. There may be any number of rows. */
sl_status sl_net_run_first(sl_net_run *run, const sl_first_part *part, const float *x, size_t stride, size_t rows,
                           float *out);
/* Items' parts of the first layer: rows of width[1] elements, anywhere in a large table. */
typedef struct sl_item_rows {
    sl_dtype type; /* SL_F32, SL_BF16, or SL_I8: signed bytes with one scale a row */
    const void *const *rows;
    const float *scales; /* SL_I8: one for each row; not read for other types */
} sl_item_rows;
/* Runs the net from the first layer's sums on: sums[r] = user + items[r] (+ pair[r], if pair is not NULL), each of
 * width[1] numbers. The activation and the other layers follow. There may be any number of rows; tiles of them stay in
 * cache. */
sl_status sl_net_run_rest(sl_net_run *run, const float *user, const sl_item_rows *items, const float *pair, size_t rows,
                          float *out);

/* ---- Training. Without oneDNN it fails with SL_EUNSUPPORTED. ---- */
typedef struct sl_net_trainer sl_net_trainer;
/* Makes a trainer with buffers for max_rows rows. `threads` share the work of each call that is large enough. Results
 * are the same in every run on one machine with one build and one number of threads; otherwise they differ by rounding.
 * Threads: one thread uses a trainer at a time. */
sl_status sl_net_trainer_create(const sl_net_shape *shape, size_t max_rows, size_t threads, double dropout,
                                const sl_allocator *allocator, sl_net_trainer **out);
void sl_net_trainer_free(sl_net_trainer *trainer);
/* The buffer for the mini-batch's inputs, and the gradient of the loss by them after backward: (rows, width[0]). */
float *sl_net_trainer_input(sl_net_trainer *trainer);
const float *sl_net_trainer_input_gradient(const sl_net_trainer *trainer);
/* Sets the type of later products' operands. Weights, activations, and in backward gradients are rounded to 16 bits of
 * `type` first. Sums, and all else of a step, stay F32. F32 ends it.
 * Errors: SL_ENOMEM (the trainer then goes on as before). */
sl_status sl_net_trainer_set_type(sl_net_trainer *trainer, sl_dtype type);
/* Returns whether rounded operands are multiplied as F32, because the machine or oneDNN has no instructions for their
 * type. */
int sl_net_trainer_emulates(const sl_net_trainer *trainer);
/* Turns on fake quantisation: later calls quantise the operands of INT8 layers, also in evaluate. Backward goes
 * straight through. The operands' type is F32.
 * Parameters: `layers` has an entry for each layer, and each forward reads it. NULL turns it off.
 * Errors: SL_ENOMEM (the trainer then goes on as before). */
sl_status sl_net_trainer_set_fake(sl_net_trainer *trainer, const sl_fake_layer *layers);
/* Computes the logits (rows, outputs). Activations do not hide NaN in weights. Dropout depends on (seed, step) alone;
 * seed 0 turns it off. */
sl_status sl_net_trainer_forward(sl_net_trainer *trainer, const float *weights, size_t rows, uint64_t seed,
                                 uint64_t step, float *logits);
/* Computes the logits as serving does, without dropout: in F32, or in INT8 for layers that are. Do not call backward
 * after it. */
sl_status sl_net_trainer_evaluate(sl_net_trainer *trainer, const float *weights, size_t rows, float *logits);
/* Sets the place of the first row in a mini-batch that several trainers share. Dropout goes by a row's place in it. */
void sl_net_trainer_set_first_row(sl_net_trainer *trainer, size_t row);
/* Sets a call for later backward passes: for each layer, from the last one down, once the gradient by its weights and
 * biases is complete. NULL: none. */
typedef void (*sl_net_layer_fn)(void *ctx, size_t layer);
void sl_net_trainer_on_layer(sl_net_trainer *trainer, sl_net_layer_fn call, void *ctx);
/* Computes the gradient by the weights for the rows of the last forward.
 * Parameters: `gradient` has the layout of the weights' block and is overwritten. `output_gradient` is (rows,
 * outputs). */
sl_status sl_net_trainer_backward(sl_net_trainer *trainer, const float *weights, const float *output_gradient,
                                  float *gradient);

/* Multiplies the gradients of the last backward, by weights (`gradient`; NULL: not these) and by inputs, by `factor`,
 * at most 1. Returns whether all are finite. */
int sl_net_trainer_unscale(sl_net_trainer *trainer, float *gradient, float factor);

/* Returns whether oneDNN multiplies matrices of the type, F32, BF16 or F16, by instructions of this machine. */
int sl_net_multiplies(sl_dtype type);
/* Returns whether this build has oneDNN. */
int sl_net_has_onednn(void);

#endif
