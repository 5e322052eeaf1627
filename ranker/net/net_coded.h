/* Dense layers that are not of floats, as a net serves them: INT8 or bf16 behind one set of calls. */
#ifndef SL_RANKER_NET_NET_CODED_H
#define SL_RANKER_NET_NET_CODED_H

#include "ranker/net/net_bf16.h"
#include "ranker/net/net_int8.h"

/* A layer that serves. One of the two pointers is set, and none of a layer of floats, which is all zeros. */
typedef struct sl_net_layer {
    sl_int8_layer *int8;
    sl_bf16_layer *bf16;
} sl_net_layer;

static inline int sl_net_layer_is_coded(const sl_net_layer *layer) {
    return layer->int8 || layer->bf16;
}

/* Makes layer `number` of a net, which is not of floats. bias has the layer's outputs. next: the next layer, or NULL
 * behind the last. Errors: SL_ENOMEM. */
sl_status sl_net_layer_create(const sl_net_shape *shape, size_t number, const sl_layer_codes *codes, const float *bias,
                              const sl_layer_codes *next, const sl_allocator *allocator, sl_net_layer *out);
void sl_net_layer_free(sl_net_layer *layer, const sl_allocator *allocator);

/* Tells whether outputs may stay in the scratch, as the next layer takes them. */
int sl_net_layer_gives_codes(const sl_net_layer *layer);
const float *sl_net_layer_bias(const sl_net_layer *layer);

/* One thread's scratch. */
typedef struct sl_net_scratch {
    sl_int8_run int8;
    sl_bf16_run bf16;
} sl_net_scratch;

/* Makes scratch for rows of that many, and for layers of INT8 or bf16 where these flags are set. Errors: SL_ENOMEM. */
sl_status sl_net_scratch_create(const sl_net_shape *shape, int int8, int bf16, size_t rows,
                                const sl_allocator *allocator, sl_net_scratch *out);
void sl_net_scratch_free(sl_net_scratch *scratch, const sl_allocator *allocator);

/* As sl_int8_take, sl_int8_give and sl_int8_part. */
void sl_net_layer_take(sl_net_scratch *scratch, const sl_net_layer *layer, const sl_layer_inputs *inputs, size_t turn,
                       size_t first_row);
void sl_net_layer_give(sl_net_scratch *scratch, const sl_net_layer *layer, size_t rows, size_t turn, float *floats);
void sl_net_layer_part(sl_net_scratch *scratch, const sl_net_layer *layer, const sl_layer_inputs *inputs, int with_bias,
                       float *floats);

#endif
