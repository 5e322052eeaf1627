/* Dense layers for serving that are not floats: one set of calls for INT8 and bf16. */
#ifndef SL_RANKER_NET_NET_LAYER_H
#define SL_RANKER_NET_NET_LAYER_H

#include "ranker/net/net_bf16.h"
#include "ranker/net/net_int8.h"

/* A layer for serving. One of the two pointers is set. A layer of floats has neither. */
typedef struct sl_net_layer {
    sl_int8_layer *int8;
    sl_bf16_layer *bf16;
} sl_net_layer;

static inline int sl_net_layer_is_coded(const sl_net_layer *layer) {
    return layer->int8 || layer->bf16;
}

/* Makes layer `number` of a net, which is not floats. bias has one number an output. next: the next layer; NULL after
 * the last. Errors: SL_ENOMEM. */
sl_status sl_net_layer_create(const sl_net_shape *shape, size_t number, const sl_layer_codes *codes, const float *bias,
                              const sl_layer_codes *next, const sl_allocator *allocator, sl_net_layer *out);
void sl_net_layer_free(sl_net_layer *layer, const sl_allocator *allocator);

/* Returns whether the layer can leave its outputs in the scratch, in the form of the next layer's inputs. */
int sl_net_layer_outputs_codes(const sl_net_layer *layer);
const float *sl_net_layer_bias(const sl_net_layer *layer);

/* One thread's scratch. */
typedef struct sl_net_scratch {
    sl_int8_run int8;
    sl_bf16_run bf16;
} sl_net_scratch;

/* Makes scratch for `rows` rows, for INT8 and bf16 layers as the flags say. Errors: SL_ENOMEM. */
sl_status sl_net_scratch_create(const sl_net_shape *shape, int int8, int bf16, size_t rows,
                                const sl_allocator *allocator, sl_net_scratch *out);
void sl_net_scratch_free(sl_net_scratch *scratch, const sl_allocator *allocator);

/* Like sl_int8_quantise_inputs, sl_int8_multiply and sl_int8_part_sums. */
void sl_net_layer_encode_inputs(sl_net_scratch *scratch, const sl_net_layer *layer, const sl_layer_inputs *inputs,
                                size_t buffer, size_t first_row);
void sl_net_layer_multiply(sl_net_scratch *scratch, const sl_net_layer *layer, size_t rows, size_t buffer,
                           float *floats);
void sl_net_layer_part_sums(sl_net_scratch *scratch, const sl_net_layer *layer, const sl_layer_inputs *inputs,
                            int with_bias, float *floats);

#endif
