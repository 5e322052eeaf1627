/* Dense layers in INT8, as a net serves them: codes of inputs, packed weights, and the numbers that make outputs of
 * sums. */
#ifndef SL_RANKER_NET_NET_INT8_H
#define SL_RANKER_NET_NET_INT8_H

#include "ranker/net/net.h"

/* A layer that serves. Arrays of outputs are as long as the outputs rounded up to a block. */
typedef struct sl_int8_layer {
    sl_layer_type type;
    sl_int8_range input; /* of SL_LAYER_INT8 */
    sl_int8_weights weights;
    size_t padded;
    float *numbers; /* the arrays below */
    float *factor, *bias, *no_bias;
    float *next_factor, *next_bias; /* for outputs in codes of the next layer; NULL: outputs are floats */
    int32_t *less;
} sl_int8_layer;

/* Makes layer `number` of a net. bias has the layer's outputs. next: the next layer, or NULL behind the last.
 * Errors: SL_ENOMEM. */
sl_status sl_int8_layer_create(const sl_net_shape *shape, size_t number, const sl_layer_codes *codes, const float *bias,
                               const sl_layer_codes *next, const sl_allocator *allocator, sl_int8_layer **out);
void sl_int8_layer_free(sl_int8_layer *layer, const sl_allocator *allocator);

/* One thread's scratch: codes of a tile's rows by turns, the rows' own ranges, and the sums of a part's weights. */
typedef struct sl_int8_run {
    const sl_int8_loops *loops;
    uint8_t *codes[2];
    size_t codes_size, pitch; /* bytes of each of the two, and of a row */
    sl_int8_range *own;
    size_t rows; /* there is room for so many */
    int32_t *part_sums;
    float *part_floats; /* those of fewer inputs, and ones behind them */
    size_t widest;      /* of the outputs, rounded up to a block */
} sl_int8_run;

/* Makes scratch for rows of that many. A net without INT8 layers needs none. Errors: SL_ENOMEM. */
sl_status sl_int8_run_create(const sl_net_shape *shape, size_t rows, const sl_allocator *allocator, sl_int8_run *out);
void sl_int8_run_free(sl_int8_run *run, const sl_allocator *allocator);

/* Writes the rows' codes into run->codes[turn], from row first_row of it on. A layer of SL_LAYER_INT8_DYNAMIC gives
 * each row a range of its own. */
void sl_int8_take(sl_int8_run *run, const sl_int8_layer *layer, const sl_layer_inputs *inputs, size_t turn,
                  size_t first_row);
/* Computes the outputs of the first `rows` rows of run->codes[turn], in floats (rows, outputs) or, where floats is
 * NULL, in the next layer's codes in run->codes[!turn]. */
void sl_int8_give(sl_int8_run *run, const sl_int8_layer *layer, size_t rows, size_t turn, float *floats);
/* Computes the sums of a part of the inputs, in floats (rows, outputs); more rows than the run has room for are no
 * error. */
void sl_int8_part(sl_int8_run *run, const sl_int8_layer *layer, const sl_layer_inputs *inputs, int with_bias,
                  float *floats);

#endif
