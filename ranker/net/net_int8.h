/* Dense INT8 layers for serving: codes of inputs, packed weights, and the factors that turn sums into outputs. */
#ifndef SL_RANKER_NET_NET_INT8_H
#define SL_RANKER_NET_NET_INT8_H

#include "ranker/net/net.h"

/* A layer for serving. Arrays of outputs have the length of the outputs rounded up to a block. */
typedef struct sl_int8_layer {
    sl_layer_type type;
    sl_int8_range input; /* of SL_LAYER_INT8 */
    sl_int8_weights weights;
    size_t padded;
    float *numbers; /* memory of the float arrays below */
    float *factor, *bias, *no_bias;
    float *next_factor, *next_bias; /* for outputs as the next layer's codes; NULL: outputs are floats */
    int32_t *zero_sums;
} sl_int8_layer;

/* Makes layer `number` of a net. bias has one number an output. next: the next layer; NULL after the last. Errors:
 * SL_ENOMEM. */
sl_status sl_int8_layer_create(const sl_net_shape *shape, size_t number, const sl_layer_codes *codes, const float *bias,
                               const sl_layer_codes *next, const sl_allocator *allocator, sl_int8_layer **out);
void sl_int8_layer_free(sl_int8_layer *layer, const sl_allocator *allocator);

/* One thread's scratch: two buffers for the codes of a tile's rows, used in turn; the rows' own ranges; and the sums of
 * a part's weights. */
typedef struct sl_int8_run {
    const sl_int8_loops *loops;
    uint8_t *codes[2];
    size_t codes_size, pitch; /* bytes of a buffer, and of a row */
    sl_int8_range *row_ranges;
    size_t rows; /* room for this many rows */
    int32_t *part_sums;
    float *part_floats; /* sums over MAX_EXACT_INPUTS inputs, then ones */
    size_t widest;      /* widest layer's outputs, rounded up to a block */
} sl_int8_run;

/* Makes scratch for `rows` rows. A net without INT8 layers needs none. Errors: SL_ENOMEM. */
sl_status sl_int8_run_create(const sl_net_shape *shape, size_t rows, const sl_allocator *allocator, sl_int8_run *out);
void sl_int8_run_free(sl_int8_run *run, const sl_allocator *allocator);

/* Quantises the rows into run->codes[buffer], from its row first_row on. In a layer of SL_LAYER_INT8_DYNAMIC, each row
 * gets its own range. */
void sl_int8_quantise_inputs(sl_int8_run *run, const sl_int8_layer *layer, const sl_layer_inputs *inputs, size_t buffer,
                             size_t first_row);
/* Computes the outputs of the first `rows` rows of run->codes[buffer], as floats (rows, outputs). If floats is NULL,
 * the next layer's codes go into run->codes[!buffer]. */
void sl_int8_multiply(sl_int8_run *run, const sl_int8_layer *layer, size_t rows, size_t buffer, float *floats);
/* Computes the sums of a part of the inputs, as floats (rows, outputs). There may be more rows than the run has room
 * for. */
void sl_int8_part_sums(sl_int8_run *run, const sl_int8_layer *layer, const sl_layer_inputs *inputs, int with_bias,
                       float *floats);

#endif
