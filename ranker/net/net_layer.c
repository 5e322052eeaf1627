#include "ranker/net/net_layer.h"

sl_status sl_net_layer_create(const sl_net_shape *shape, size_t number, const sl_layer_codes *codes, const float *bias,
                              const sl_layer_codes *next, const sl_allocator *allocator, sl_net_layer *out) {
    *out = (sl_net_layer){.int8 = NULL};
    if (codes->type == SL_LAYER_BF16)
        return sl_bf16_layer_create(shape, number, codes, bias, next, allocator, &out->bf16);
    return sl_int8_layer_create(shape, number, codes, bias, next, allocator, &out->int8);
}

void sl_net_layer_free(sl_net_layer *layer, const sl_allocator *allocator) {
    sl_int8_layer_free(layer->int8, allocator);
    sl_bf16_layer_free(layer->bf16, allocator);
    *layer = (sl_net_layer){.int8 = NULL};
}

int sl_net_layer_outputs_codes(const sl_net_layer *layer) {
    return layer->bf16 ? layer->bf16->outputs_bf16 : layer->int8->next_factor != NULL;
}

const float *sl_net_layer_bias(const sl_net_layer *layer) {
    return layer->bf16 ? layer->bf16->bias : layer->int8->bias;
}

sl_status sl_net_scratch_create(const sl_net_shape *shape, int int8, int bf16, size_t rows,
                                const sl_allocator *allocator, sl_net_scratch *out) {
    *out = (sl_net_scratch){.int8 = {.rows = 0}};
    if (int8) SL_TRY(sl_int8_run_create(shape, rows, allocator, &out->int8));
    if (!bf16) return SL_OK;
    sl_status status = sl_bf16_run_create(shape, rows, allocator, &out->bf16);
    if (status != SL_OK) sl_net_scratch_free(out, allocator);
    return status;
}

void sl_net_scratch_free(sl_net_scratch *scratch, const sl_allocator *allocator) {
    sl_int8_run_free(&scratch->int8, allocator);
    sl_bf16_run_free(&scratch->bf16, allocator);
}

void sl_net_layer_encode_inputs(sl_net_scratch *scratch, const sl_net_layer *layer, const sl_layer_inputs *inputs,
                                size_t buffer, size_t first_row) {
    if (layer->bf16)
        sl_bf16_round_inputs(&scratch->bf16, inputs, buffer, first_row);
    else
        sl_int8_quantise_inputs(&scratch->int8, layer->int8, inputs, buffer, first_row);
}

void sl_net_layer_multiply(sl_net_scratch *scratch, const sl_net_layer *layer, size_t rows, size_t buffer,
                           float *floats) {
    if (layer->bf16)
        sl_bf16_multiply(&scratch->bf16, layer->bf16, rows, buffer, floats);
    else
        sl_int8_multiply(&scratch->int8, layer->int8, rows, buffer, floats);
}

void sl_net_layer_part_sums(sl_net_scratch *scratch, const sl_net_layer *layer, const sl_layer_inputs *inputs,
                            int with_bias, float *floats) {
    if (layer->bf16)
        sl_bf16_part_sums(&scratch->bf16, layer->bf16, inputs, with_bias, floats);
    else
        sl_int8_part_sums(&scratch->int8, layer->int8, inputs, with_bias, floats);
}
