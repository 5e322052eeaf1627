#include "ranker/net/net_coded.h"

sl_status sl_net_layer_create(const sl_net_shape *shape, size_t number, const sl_layer_codes *codes, const float *bias,
                              const sl_layer_codes *next, const sl_allocator *allocator, sl_net_layer *out) {
    *out = (sl_net_layer){NULL, NULL};
    if (codes->type == SL_LAYER_BF16)
        return sl_bf16_layer_create(shape, number, codes, bias, next, allocator, &out->bf16);
    return sl_int8_layer_create(shape, number, codes, bias, next, allocator, &out->int8);
}

void sl_net_layer_free(sl_net_layer *layer, const sl_allocator *allocator) {
    sl_int8_layer_free(layer->int8, allocator);
    sl_bf16_layer_free(layer->bf16, allocator);
    *layer = (sl_net_layer){NULL, NULL};
}

int sl_net_layer_gives_codes(const sl_net_layer *layer) {
    return layer->bf16 ? layer->bf16->gives : layer->int8->next_factor != NULL;
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

void sl_net_layer_take(sl_net_scratch *scratch, const sl_net_layer *layer, const sl_layer_inputs *inputs, size_t turn,
                       size_t first_row) {
    if (layer->bf16)
        sl_bf16_take(&scratch->bf16, inputs, turn, first_row);
    else
        sl_int8_take(&scratch->int8, layer->int8, inputs, turn, first_row);
}

void sl_net_layer_give(sl_net_scratch *scratch, const sl_net_layer *layer, size_t rows, size_t turn, float *floats) {
    if (layer->bf16)
        sl_bf16_give(&scratch->bf16, layer->bf16, rows, turn, floats);
    else
        sl_int8_give(&scratch->int8, layer->int8, rows, turn, floats);
}

void sl_net_layer_part(sl_net_scratch *scratch, const sl_net_layer *layer, const sl_layer_inputs *inputs, int with_bias,
                       float *floats) {
    if (layer->bf16)
        sl_bf16_part(&scratch->bf16, layer->bf16, inputs, with_bias, floats);
    else
        sl_int8_part(&scratch->int8, layer->int8, inputs, with_bias, floats);
}
