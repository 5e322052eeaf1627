/* Dense bf16 layers for serving: packed weights, and inputs rounded to bf16. */
#ifndef SL_RANKER_NET_NET_BF16_H
#define SL_RANKER_NET_NET_BF16_H

#include "ranker/net/bf16.h"
#include "ranker/net/net.h"

/* A layer for serving. Arrays of outputs have the length of the outputs rounded up to a block. */
typedef struct sl_bf16_layer {
    sl_bf16_weights weights;
    size_t padded;
    float *bias, *no_bias;
    int outputs_bf16; /* whether outputs go to the next layer as bf16: that layer is bf16, and a ReLU lies between */
} sl_bf16_layer;

/* Makes layer `number` of a net. bias has one number an output. next: the next layer; NULL after the last. Errors:
 * SL_ENOMEM. */
sl_status sl_bf16_layer_create(const sl_net_shape *shape, size_t number, const sl_layer_codes *codes, const float *bias,
                               const sl_layer_codes *next, const sl_allocator *allocator, sl_bf16_layer **out);
void sl_bf16_layer_free(sl_bf16_layer *layer, const sl_allocator *allocator);

/* One thread's scratch: two buffers for the rounded rows of a tile, used in turn. */
typedef struct sl_bf16_run {
    const sl_bf16_loops *loops;
    uint16_t *numbers[2];
    size_t bytes, pitch; /* bytes of a buffer, and numbers of a row */
    size_t rows;         /* room for this many rows */
} sl_bf16_run;

/* Makes scratch for `rows` rows. Errors: SL_ENOMEM. */
sl_status sl_bf16_run_create(const sl_net_shape *shape, size_t rows, const sl_allocator *allocator, sl_bf16_run *out);
void sl_bf16_run_free(sl_bf16_run *run, const sl_allocator *allocator);

/* Rounds the rows into run->numbers[buffer], from its row first_row on. */
void sl_bf16_round_inputs(sl_bf16_run *run, const sl_layer_inputs *inputs, size_t buffer, size_t first_row);
/* Computes the outputs of the first `rows` rows of run->numbers[buffer], as floats (rows, outputs). If floats is NULL,
 * they go through the ReLU and, rounded, into run->numbers[!buffer]. */
void sl_bf16_multiply(sl_bf16_run *run, const sl_bf16_layer *layer, size_t rows, size_t buffer, float *floats);
/* Computes the sums of a part of the inputs, as floats (rows, outputs). There may be more rows than the run has room
 * for. */
void sl_bf16_part_sums(sl_bf16_run *run, const sl_bf16_layer *layer, const sl_layer_inputs *inputs, int with_bias,
                       float *floats);

#endif
