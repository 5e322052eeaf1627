/* Fake quantisation in a net that trains (Jacob et al. 2018, arXiv 1712.05877). An INT8 layer multiplies the steps of
 * its inputs by the steps of its weights: whole numbers, kept as floats. Sums below 2^24 are then exact, and equal
 * those of the codes. After the sum, it rounds as net_int8.h does. So its outputs are bit for bit those of the INT8
 * layer. Gradients go straight through the rounding. */
#ifndef SL_RANKER_NET_NET_FAKE_H
#define SL_RANKER_NET_NET_FAKE_H

#include "ranker/net/loops.h"
#include "ranker/net/net.h"

/* Statistics of a layer's inputs in the last step. Layers of floats have none. */
typedef struct sl_fake_seen {
    float low, high;   /* the minimum and maximum of the inputs and 0 */
    sl_fake_sums sums; /* sums of the gradients by the inputs' steps */
} sl_fake_seen;

typedef struct sl_net_fake {
    sl_allocator allocator;
    const sl_loops *loops;
    sl_net_shape shape;
    size_t threads;
    const sl_fake_layer *layers;
    const float *bias[SL_MAX_LAYERS]; /* the step's biases */
    float *numbers;                   /* one block for the arrays below, which have each layer's outputs */
    float *factor[SL_MAX_LAYERS], *units[SL_MAX_LAYERS], *next_factor[SL_MAX_LAYERS], *next_bias[SL_MAX_LAYERS];
    float *by_log_scale[SL_MAX_LAYERS]; /* gradients by the logarithms of the weights' scales */
    sl_fake_seen *seen;                 /* (threads, layers) */
} sl_net_fake;

/* Parameters: `layers` has an entry for each layer, and every call reads it. Errors: SL_ENOMEM. */
sl_status sl_net_fake_create(const sl_net_shape *shape, size_t threads, const sl_fake_layer *layers,
                             const sl_allocator *allocator, sl_net_fake **out);
void sl_net_fake_free(sl_net_fake *fake);

/* Begins a step: reads the layers' ranges, and writes the weights' steps in the layout of the weights' block. */
void sl_net_fake_weights(sl_net_fake *fake, const float *weights, float *steps);
/* Makes the steps of n of a layer's inputs, and records their extremes for thread `thread`. */
void sl_net_fake_inputs(sl_net_fake *fake, size_t layer, size_t thread, const float *values, size_t n, float *steps);
/* Turns a product's sums (rows, outputs) into the outputs before the activation, in place. Writes the next layer's
 * steps too if serving makes them from the sums. */
void sl_net_fake_outputs(const sl_net_fake *fake, size_t layer, float *sums, size_t rows, float *next_steps);
/* Makes the operand of a layer's backward products from the gradient by its outputs before the activation. */
void sl_net_fake_gradient(const sl_net_fake *fake, size_t layer, const float *by_outputs, size_t rows, float *operand);
/* Turns n gradients by a layer's input steps into gradients by its inputs, in place. */
void sl_net_fake_backward(sl_net_fake *fake, size_t layer, size_t thread, const float *values, float *gradient,
                          size_t n);
/* Turns the gradient by the steps of a layer's weights into the gradient by the weights, in place. */
void sl_net_fake_weight_gradient(sl_net_fake *fake, size_t layer, const float *weights, float *gradient);

/* Returns a layer's statistics over all threads. */
sl_fake_seen sl_net_fake_seen(const sl_net_fake *fake, size_t layer);
/* Replaces a layer's statistics, those of all threads together. */
void sl_net_fake_set_seen(sl_net_fake *fake, size_t layer, const sl_fake_seen *seen);

/* net_train.c: a trainer's fake quantisation; NULL if it is off. */
sl_net_fake *sl_net_trainer_get_fake(const sl_net_trainer *trainer);
/* net_train.c: a layer's inputs (rows, width) in the last evaluate, before quantisation. */
const float *sl_net_trainer_layer_inputs(const sl_net_trainer *trainer, size_t layer);

#endif
