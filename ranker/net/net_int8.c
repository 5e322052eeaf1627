#include "ranker/net/net_int8.h"

#include <string.h>

/* The most inputs whose sum of weights is exact in a float. */
enum { MAX_EXACT_INPUTS = 1 << 16 };

/* ---- A layer ---- */

/* After a ReLU, the next layer's codes have zero point 0: clamping to code 0 is the ReLU. */
static int outputs_codes(const sl_net_shape *shape, const sl_layer_codes *next) {
    return next && next->type == SL_LAYER_INT8 && shape->activation == SL_RELU && next->input.zero == 0;
}

static void fill_arrays(sl_int8_layer *layer, const sl_layer_codes *codes, const float *bias,
                        const sl_layer_codes *next) {
    float scale = layer->type == SL_LAYER_INT8 ? layer->input.scale : 1;
    for (size_t o = 0; o < layer->weights.out; o++) {
        layer->factor[o] = scale * codes->scales[o];
        layer->bias[o] = bias[o];
        layer->zero_sums[o] = layer->type == SL_LAYER_INT8 ? layer->input.zero * layer->weights.column_sums[o]
                                                           : layer->weights.column_sums[o];
        if (!next) continue;
        layer->next_factor[o] = layer->factor[o] / next->input.scale;
        layer->next_bias[o] = bias[o] / next->input.scale;
    }
}

static sl_status make_arrays(sl_int8_layer *layer, int makes_codes, const sl_allocator *allocator) {
    void *block;
    SL_TRY(sl_mem_alloc(allocator, 5 * layer->padded * sizeof(float), &block));
    layer->numbers = block;
    layer->factor = layer->numbers;
    layer->bias = layer->factor + layer->padded;
    layer->no_bias = layer->bias + layer->padded;
    if (makes_codes) {
        layer->next_factor = layer->no_bias + layer->padded;
        layer->next_bias = layer->next_factor + layer->padded;
    }
    SL_TRY(sl_mem_alloc(allocator, layer->padded * sizeof *layer->zero_sums, &block));
    layer->zero_sums = block;
    return SL_OK;
}

sl_status sl_int8_layer_create(const sl_net_shape *shape, size_t number, const sl_layer_codes *codes, const float *bias,
                               const sl_layer_codes *next, const sl_allocator *allocator, sl_int8_layer **out) {
    *out = NULL;
    sl_status status;
    void *block;
    int makes_codes = outputs_codes(shape, next);
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_int8_layer), &block));
    sl_int8_layer *layer = block;
    layer->type = codes->type;
    layer->input = codes->input;
    layer->padded = sl_round_up(shape->width[number + 1], SL_PANEL_BLOCK);
    SL_TRY_GOTO(sl_int8_pack(codes->codes, shape->width[number], shape->width[number + 1], allocator, &layer->weights),
                fail);
    SL_TRY_GOTO(make_arrays(layer, makes_codes, allocator), fail);
    fill_arrays(layer, codes, bias, makes_codes ? next : NULL);
    *out = layer;
    return SL_OK;
fail:
    sl_int8_layer_free(layer, allocator);
    return status;
}

void sl_int8_layer_free(sl_int8_layer *layer, const sl_allocator *allocator) {
    if (!layer) return;
    sl_int8_weights_free(&layer->weights, allocator);
    SL_FREE_ARRAY(allocator, layer->numbers, 5 * layer->padded);
    SL_FREE_ARRAY(allocator, layer->zero_sums, layer->padded);
    SL_FREE(allocator, layer);
}

/* ---- Scratch ---- */

sl_status sl_int8_run_create(const sl_net_shape *shape, size_t rows, const sl_allocator *allocator, sl_int8_run *out) {
    sl_status status;
    void *block;
    *out = (sl_int8_run){.loops = sl_int8_get(), .rows = rows};
    const size_t widest = sl_net_widest(shape, 0);
    /* A part's codes may begin within a group. */
    out->pitch = sl_round_up(widest + 2 * SL_INT8_GROUP, SL_CACHE_LINE);
    out->widest = sl_round_up(widest, SL_PANEL_BLOCK);
    if (!sl_mul(rows, out->pitch, &out->codes_size))
        return sl_fail(SL_ENOMEM, "codes of %zu rows do not fit the address space", rows);
    for (size_t i = 0; i < 2; i++) {
        SL_TRY_GOTO(sl_mem_alloc(allocator, out->codes_size, &block), fail);
        out->codes[i] = block;
    }
    SL_TRY_GOTO(sl_mem_alloc(allocator, rows * sizeof *out->row_ranges, &block), fail);
    out->row_ranges = block;
    SL_TRY_GOTO(sl_mem_alloc(allocator, out->widest * sizeof *out->part_sums, &block), fail);
    out->part_sums = block;
    SL_TRY_GOTO(sl_mem_alloc(allocator, 2 * out->widest * sizeof *out->part_floats, &block), fail);
    out->part_floats = block;
    return SL_OK;
fail:
    sl_int8_run_free(out, allocator);
    return status;
}

void sl_int8_run_free(sl_int8_run *run, const sl_allocator *allocator) {
    for (size_t i = 0; i < 2; i++)
        sl_mem_free(allocator, run->codes[i], run->codes_size);
    SL_FREE_ARRAY(allocator, run->row_ranges, run->rows);
    SL_FREE_ARRAY(allocator, run->part_sums, run->widest);
    SL_FREE_ARRAY(allocator, run->part_floats, 2 * run->widest);
    *run = (sl_int8_run){0};
}

/* ---- Products ---- */

/* The groups with inputs `from` to from + count, and the bytes of the first group before them. */
typedef struct groups {
    size_t first, count, front;
} groups;

static groups groups_of(size_t from, size_t count) {
    groups g = {.first = from / SL_INT8_GROUP, .front = from % SL_INT8_GROUP};
    g.count = sl_int8_groups(g.front + count);
    return g;
}

void sl_int8_quantise_inputs(sl_int8_run *run, const sl_int8_layer *layer, const sl_layer_inputs *inputs, size_t buffer,
                             size_t first_row) {
    const groups g = groups_of(inputs->from, inputs->count);
    for (size_t r = 0; r < inputs->rows; r++) {
        const float *x = inputs->x + r * inputs->stride;
        uint8_t *codes = run->codes[buffer] + (first_row + r) * run->pitch;
        sl_int8_range range = layer->input;
        if (layer->type == SL_LAYER_INT8_DYNAMIC) {
            float low, high;
            run->loops->extent(x, inputs->count, &low, &high);
            range = run->row_ranges[first_row + r] = sl_int8_range_of(low, high);
        }
        /* Inputs of other parts in the first and the last group are zeros. */
        memset(codes, 0, g.front);
        run->loops->quantise(x, inputs->count, &range, codes + g.front);
        memset(codes + g.front + inputs->count, 0, SL_INT8_GROUP * g.count - g.front - inputs->count);
    }
}

static sl_int8_product product_of(const sl_int8_run *run, const sl_int8_layer *layer, size_t rows, size_t buffer) {
    return (sl_int8_product){.weights = &layer->weights,
                             .group_count = sl_int8_groups(layer->weights.in),
                             .src = run->codes[buffer],
                             .rows = rows,
                             .src_pitch = run->pitch,
                             .zero_sums = layer->zero_sums,
                             .factor = layer->factor,
                             .bias = layer->bias,
                             .row_ranges = layer->type == SL_LAYER_INT8_DYNAMIC ? run->row_ranges : NULL};
}

void sl_int8_multiply(sl_int8_run *run, const sl_int8_layer *layer, size_t rows, size_t buffer, float *floats) {
    sl_int8_product product = product_of(run, layer, rows, buffer);
    product.floats = floats;
    product.dst_pitch = layer->weights.out;
    if (!floats) {
        product.codes = run->codes[!buffer];
        product.dst_pitch = run->pitch;
        product.factor = layer->next_factor;
        product.bias = layer->next_bias;
    }
    run->loops->product(&product);
}

/* Sums the weights of a part's inputs for each output, by multiplying a row of ones. */
static void sum_part_weights(sl_int8_run *run, const sl_int8_layer *layer, size_t from, size_t count) {
    memset(run->part_sums, 0, run->widest * sizeof *run->part_sums);
    for (size_t at = 0, some; at < count; at += some) {
        some = count - at < MAX_EXACT_INPUTS ? count - at : MAX_EXACT_INPUTS;
        const groups g = groups_of(from + at, some);
        memset(run->codes[0], 0, g.count * SL_INT8_GROUP);
        memset(run->codes[0] + g.front, 1, some);
        sl_int8_product ones = {.weights = &layer->weights,
                                .first_group = g.first,
                                .group_count = g.count,
                                .src = run->codes[0],
                                .rows = 1,
                                .src_pitch = run->pitch,
                                .zero_sums = layer->zero_sums,
                                .factor = run->part_floats + run->widest,
                                .bias = layer->no_bias,
                                .row_ranges = &(const sl_int8_range){1, 0},
                                .floats = run->part_floats,
                                .dst_pitch = layer->weights.out};
        for (size_t o = 0; o < layer->padded; o++)
            run->part_floats[run->widest + o] = 1;
        run->loops->product(&ones);
        for (size_t o = 0; o < layer->weights.out; o++)
            run->part_sums[o] += (int32_t)run->part_floats[o];
    }
}

void sl_int8_part_sums(sl_int8_run *run, const sl_int8_layer *layer, const sl_layer_inputs *inputs, int with_bias,
                       float *floats) {
    const groups g = groups_of(inputs->from, inputs->count);
    sum_part_weights(run, layer, inputs->from, inputs->count);
    if (layer->type == SL_LAYER_INT8)
        for (size_t o = 0; o < layer->padded; o++)
            run->part_sums[o] *= layer->input.zero;
    for (size_t at = 0, rows; at < inputs->rows; at += rows) {
        sl_layer_inputs some = *inputs;
        some.x += at * inputs->stride;
        some.rows = rows = inputs->rows - at < run->rows ? inputs->rows - at : run->rows;
        sl_int8_quantise_inputs(run, layer, &some, 0, 0);
        sl_int8_product product = product_of(run, layer, rows, 0);
        product.first_group = g.first;
        product.group_count = g.count;
        product.zero_sums = run->part_sums;
        if (!with_bias) product.bias = layer->no_bias;
        product.floats = floats + at * layer->weights.out;
        product.dst_pitch = layer->weights.out;
        run->loops->product(&product);
    }
}
