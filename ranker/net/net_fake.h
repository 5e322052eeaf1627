/* Fake quantisation in a net that trains (Jacob et al. 2018, arXiv 1712.05877). A product of a layer in INT8 multiplies
 * the steps of its inputs by the steps of its weights: whole numbers, kept as floats. Sums below 2^24 are then exact,
 * and equal those of the codes. The roundings behind the sum are those of net_int8.h, so that the outputs are the
 * folded layer's, bit for bit. Gradients go straight through the rounding. */
#ifndef SL_RANKER_NET_NET_FAKE_H
#define SL_RANKER_NET_NET_FAKE_H

#include "ranker/net/loops.h"
#include "ranker/net/net.h"

/* Numbers that a layer saw in the last step. Layers of floats see none. */
typedef struct sl_fake_seen {
    float low, high;   /* the least and the largest input, and 0 */
    sl_fake_sums sums; /* of the gradients by the inputs' steps */
} sl_fake_seen;

typedef struct sl_net_fake {
    sl_allocator allocator;
    const sl_loops *loops;
    sl_net_shape shape;
    size_t threads;
    const sl_fake_layer *layers;
    const float *bias[SL_MAX_LAYERS]; /* of the step's weights */
    float *numbers;                   /* the arrays below, of each layer's outputs; one block */
    float *factor[SL_MAX_LAYERS], *units[SL_MAX_LAYERS], *next_factor[SL_MAX_LAYERS], *next_bias[SL_MAX_LAYERS];
    float *by_log_scale[SL_MAX_LAYERS]; /* gradients by the logarithms of the weights' scales */
    sl_fake_seen *seen;                 /* (threads, layers) */
} sl_net_fake;

/* Parameters: layers has an entry a layer and is read by every call. Errors: SL_ENOMEM. */
sl_status sl_net_fake_create(const sl_net_shape *shape, size_t threads, const sl_fake_layer *layers,
                             const sl_allocator *allocator, sl_net_fake **out);
void sl_net_fake_free(sl_net_fake *fake);

/* Begins a step: takes the layers' ranges up, and writes the operands of the weights, in the layout of their block. */
void sl_net_fake_weights(sl_net_fake *fake, const float *weights, float *steps);
/* Makes the operands of a layer from n of its inputs, and notes their extremes for thread number `thread`. */
void sl_net_fake_inputs(sl_net_fake *fake, size_t layer, size_t thread, const float *values, size_t n, float *steps);
/* Makes a layer's outputs before the activation of its product's sums (rows, outputs), in place. Writes the next
 * layer's steps as well, where serving makes them of the sums. */
void sl_net_fake_outputs(const sl_net_fake *fake, size_t layer, float *sums, size_t rows, float *next_steps);
/* Makes the operand of a layer's backward products of the gradient by its outputs before the activation. */
void sl_net_fake_gradient(const sl_net_fake *fake, size_t layer, const float *by_outputs, size_t rows, float *operand);
/* Turns n gradients by a layer's steps into gradients by its inputs, in place. */
void sl_net_fake_backward(sl_net_fake *fake, size_t layer, size_t thread, const float *values, float *gradient,
                          size_t n);
/* Turns the gradient by the steps of a layer's weights into that by the weights, in place. */
void sl_net_fake_weight_gradient(sl_net_fake *fake, size_t layer, const float *weights, float *gradient);

/* Sums up what all threads saw of a layer. */
sl_fake_seen sl_net_fake_seen(const sl_net_fake *fake, size_t layer);

/* The fake quantisation of a trainer, which net_train.c runs; NULL where its layers are floats. */
const sl_net_fake *sl_net_trainer_faked(const sl_net_trainer *trainer);
/* The inputs (rows, width) of a layer in the last evaluate, before they were quantised. */
const float *sl_net_trainer_values(const sl_net_trainer *trainer, size_t layer);

#endif
