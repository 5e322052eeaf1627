#include "ranker/net/net_bf16.h"

#include "ranker/net/loops.h"

#include <string.h>

/* ---- A layer ---- */

sl_status sl_bf16_layer_create(const sl_net_shape *shape, size_t number, const sl_layer_codes *codes, const float *bias,
                               const sl_layer_codes *next, const sl_allocator *allocator, sl_bf16_layer **out) {
    size_t in = shape->width[number], outputs = shape->width[number + 1];
    sl_status status;
    void *block;
    *out = NULL;
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_bf16_layer), &block));
    sl_bf16_layer *layer = block;
    layer->padded = sl_round_up(outputs, SL_PANEL_BLOCK);
    layer->outputs_bf16 = next && next->type == SL_LAYER_BF16 && shape->activation == SL_RELU;
    SL_TRY_GOTO(sl_bf16_pack(codes->bf16, in, outputs, allocator, &layer->weights), fail);
    SL_TRY_GOTO(sl_mem_alloc(allocator, 2 * layer->padded * sizeof *bias, &block), fail);
    layer->bias = block;
    layer->no_bias = layer->bias + layer->padded;
    memcpy(layer->bias, bias, outputs * sizeof *bias);
    *out = layer;
    return SL_OK;
fail:
    sl_bf16_layer_free(layer, allocator);
    return status;
}

void sl_bf16_layer_free(sl_bf16_layer *layer, const sl_allocator *allocator) {
    if (!layer) return;
    sl_bf16_weights_free(&layer->weights, allocator);
    SL_FREE_ARRAY(allocator, layer->bias, 2 * layer->padded);
    SL_FREE(allocator, layer);
}

/* ---- Scratch ---- */

sl_status sl_bf16_run_create(const sl_net_shape *shape, size_t rows, const sl_allocator *allocator, sl_bf16_run *out) {
    const size_t widest = sl_net_widest(shape, 0);
    *out = (sl_bf16_run){.loops = sl_bf16_get(), .rows = rows};
    /* A part may begin within a group, and outputs fill whole blocks. */
    out->pitch = sl_round_up(widest + SL_BF16_GROUP, SL_CACHE_LINE / sizeof **out->numbers);
    if (!sl_mul(rows, out->pitch * sizeof **out->numbers, &out->bytes))
        return sl_fail(SL_ENOMEM, "bf16 numbers of %zu rows do not fit the address space", rows);
    for (size_t i = 0; i < 2; i++) {
        void *block;
        sl_status status = sl_mem_alloc(allocator, out->bytes, &block);
        if (status != SL_OK) {
            sl_bf16_run_free(out, allocator);
            return status;
        }
        out->numbers[i] = block;
    }
    return SL_OK;
}

void sl_bf16_run_free(sl_bf16_run *run, const sl_allocator *allocator) {
    for (size_t i = 0; i < 2; i++)
        sl_mem_free(allocator, run->numbers[i], run->bytes);
    *run = (sl_bf16_run){0};
}

/* ---- Products ---- */

void sl_bf16_round_inputs(sl_bf16_run *run, const sl_layer_inputs *inputs, size_t buffer, size_t first_row) {
    const sl_loops *loops = sl_loops_get();
    const size_t front = inputs->from % SL_BF16_GROUP, end = front + inputs->count;
    for (size_t r = 0; r < inputs->rows; r++) {
        uint16_t *numbers = run->numbers[buffer] + (first_row + r) * run->pitch;
        /* Inputs of other parts in the first and the last group are zeros. */
        memset(numbers, 0, front * sizeof *numbers);
        loops->narrow(inputs->x + r * inputs->stride, inputs->count, SL_BF16, numbers + front);
        memset(numbers + end, 0, end % SL_BF16_GROUP * sizeof *numbers);
    }
}

static sl_bf16_product product_of(const sl_bf16_run *run, const sl_bf16_layer *layer, size_t rows, size_t buffer) {
    return (sl_bf16_product){.weights = &layer->weights,
                             .group_count = sl_bf16_groups(layer->weights.in),
                             .src = run->numbers[buffer],
                             .rows = rows,
                             .src_pitch = run->pitch,
                             .bias = layer->bias};
}

void sl_bf16_multiply(sl_bf16_run *run, const sl_bf16_layer *layer, size_t rows, size_t buffer, float *floats) {
    sl_bf16_product product = product_of(run, layer, rows, buffer);
    product.floats = floats;
    product.dst_pitch = layer->weights.out;
    if (!floats) {
        product.numbers = run->numbers[!buffer];
        product.dst_pitch = run->pitch;
    }
    run->loops->product(&product);
}

void sl_bf16_part_sums(sl_bf16_run *run, const sl_bf16_layer *layer, const sl_layer_inputs *inputs, int with_bias,
                       float *floats) {
    const size_t front = inputs->from % SL_BF16_GROUP;
    for (size_t at = 0, rows; at < inputs->rows; at += rows) {
        sl_layer_inputs some = *inputs;
        some.x += at * inputs->stride;
        some.rows = rows = inputs->rows - at < run->rows ? inputs->rows - at : run->rows;
        sl_bf16_round_inputs(run, &some, 0, 0);
        sl_bf16_product product = product_of(run, layer, rows, 0);
        product.first_group = inputs->from / SL_BF16_GROUP;
        product.group_count = sl_bf16_groups(front + inputs->count);
        if (!with_bias) product.bias = layer->no_bias;
        product.floats = floats + at * layer->weights.out;
        product.dst_pitch = layer->weights.out;
        run->loops->product(&product);
    }
}
