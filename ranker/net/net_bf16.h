/* Dense layers in bf16, as a net serves them: packed weights, and inputs rounded to bf16. */
#ifndef SL_RANKER_NET_NET_BF16_H
#define SL_RANKER_NET_NET_BF16_H

#include "ranker/net/bf16.h"
#include "ranker/net/net.h"

/* A layer that serves. Arrays of outputs are as long as the outputs rounded up to a block. */
typedef struct sl_bf16_layer {
    sl_bf16_weights weights;
    size_t padded;
    float *bias, *no_bias;
    int gives; /* whether outputs go to the next layer as bf16: it is of this type, and a ReLU lies between */
} sl_bf16_layer;

/* Makes layer `number` of a net. bias has the layer's outputs. next: the next layer, or NULL behind the last.
 * Errors: SL_ENOMEM. */
sl_status sl_bf16_layer_create(const sl_net_shape *shape, size_t number, const sl_layer_codes *codes, const float *bias,
                               const sl_layer_codes *next, const sl_allocator *allocator, sl_bf16_layer **out);
void sl_bf16_layer_free(sl_bf16_layer *layer, const sl_allocator *allocator);

/* One thread's scratch: rounded rows of a tile by turns. */
typedef struct sl_bf16_run {
    const sl_bf16_loops *loops;
    uint16_t *numbers[2];
    size_t bytes, pitch; /* bytes of each of the two, and numbers of a row */
    size_t rows;         /* there is room for so many */
} sl_bf16_run;

/* Makes scratch for rows of that many. Errors: SL_ENOMEM. */
sl_status sl_bf16_run_create(const sl_net_shape *shape, size_t rows, const sl_allocator *allocator, sl_bf16_run *out);
void sl_bf16_run_free(sl_bf16_run *run, const sl_allocator *allocator);

/* Writes the rows, rounded, into run->numbers[turn], from row first_row of it on. */
void sl_bf16_take(sl_bf16_run *run, const sl_layer_inputs *inputs, size_t turn, size_t first_row);
/* Computes the outputs of the first `rows` rows of run->numbers[turn], in floats (rows, outputs) or, where floats is
 * NULL, behind the ReLU and rounded in run->numbers[!turn]. */
void sl_bf16_give(sl_bf16_run *run, const sl_bf16_layer *layer, size_t rows, size_t turn, float *floats);
/* Computes the sums of a part of the inputs, in floats (rows, outputs); more rows than the run has room for are no
 * error. */
void sl_bf16_part(sl_bf16_run *run, const sl_bf16_layer *layer, const sl_layer_inputs *inputs, int with_bias,
                  float *floats);

#endif
