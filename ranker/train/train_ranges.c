#include "ranker/train/train_ranges.h"

#include "base/thread.h"
#include "ranker/net/column_scale.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Weight of a mini-batch's extremes in the moving average of ranges. */
#define NEW_SHARE 0.01f
/* Bounds of learned numbers, which keep their products and quotients finite. */
#define LEAST_NUMBER   1e-30f
#define LARGEST_NUMBER 1e30f
/* Largest codes, for the scale of LSQ's gradients. */
#define INPUT_CODES  255.0f
#define WEIGHT_CODES 127.0f
/* Offsets in a layer's numbers. */
enum { LOW, HIGH, SCALES };
/* Weights per thread: with fewer, waking a thread costs more than it saves. */
#define WEIGHTS_OF_A_THREAD ((size_t)1 << 16)
#define LINE                (SL_CACHE_LINE / sizeof(float))

/* ---------------------------------------------------------------------------------------------------------------
 * Parameters
 * ------------------------------------------------------------------------------------------------------------- */

sl_status sl_ranges_check(const sl_train_params *params) {
    if ((unsigned)params->layers > SL_TRAIN_LAYERS_INT8)
        return sl_fail(SL_EINVAL, "layers is %d, which is none of sl_train_layers", (int)params->layers);
    if ((unsigned)params->ranges > SL_TRAIN_RANGES_LEARNED)
        return sl_fail(SL_EINVAL, "ranges is %d, which is none of sl_train_ranges", (int)params->ranges);
    if (params->keep_count && !params->keep)
        return sl_fail(SL_EINVAL, "keep is NULL, with %zu names", params->keep_count);
    if (params->layers == SL_TRAIN_LAYERS_F32) {
        if (params->ranges == SL_TRAIN_RANGES_OBSERVED && !params->keep_count) return SL_OK;
        return sl_fail(SL_EINVAL, "ranges and keep are of layers in INT8; set layers to SL_TRAIN_LAYERS_INT8");
    }
    if (params->precision == SL_TRAIN_BF16 || params->precision == SL_TRAIN_FP16)
        return sl_fail(SL_EINVAL,
                       "layers in INT8 train in products of f32, whose sums of codes are exact; leave precision %s out",
                       sl_train_precision_name(params->precision));
    return SL_OK;
}

static sl_status choose_layers(sl_ranges *ranges, const sl_train_params *params) {
    const sl_net_shape *shape = &ranges->shape;
    size_t in_int8 = 0;
    for (size_t l = 0; l < shape->layers; l++)
        ranges->layers[l].is_int8 = 1;
    for (size_t i = 0; i < params->keep_count; i++) {
        size_t layer = 0;
        SL_TRY(sl_layer_find(shape, params->keep[i], &layer));
        ranges->layers[layer].is_int8 = 0;
    }
    for (size_t l = 0; l < shape->layers; l++) {
        ranges->at[l] = ranges->size;
        if (!ranges->layers[l].is_int8) continue;
        ranges->size += SCALES + shape->width[l + 1];
        in_int8++;
    }
    return in_int8 ? SL_OK : sl_fail(SL_EINVAL, "every layer is kept in F32; leave out one of them, or layers");
}

/* ---------------------------------------------------------------------------------------------------------------
 * Life
 * ------------------------------------------------------------------------------------------------------------- */

static size_t block_size(const sl_ranges *ranges) {
    return (4 + ranges->states) * ranges->size * sizeof(float);
}

static sl_status alloc_numbers(sl_ranges *ranges, const sl_train_params *params) {
    void *block;
    SL_TRY(choose_layers(ranges, params));
    SL_TRY(sl_mem_alloc(&ranges->allocator, block_size(ranges), &block));
    ranges->numbers = block;
    ranges->best = ranges->numbers + ranges->size;
    ranges->state = ranges->best + ranges->size;
    ranges->room = ranges->state + ranges->states * ranges->size;
    return SL_OK;
}

sl_status sl_ranges_create(const sl_train_params *params, const sl_net_shape *shape, size_t states,
                           const sl_allocator *allocator, sl_ranges **out) {
    void *block;
    *out = NULL;
    if (params->layers == SL_TRAIN_LAYERS_F32) return SL_OK;
    if (!shape->layers)
        return sl_fail(SL_EINVAL, "the model has no deep part, and so no layers for INT8; leave layers out");
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_ranges), &block));
    sl_ranges *ranges = block;
    ranges->allocator = *allocator;
    ranges->loops = sl_loops_get();
    ranges->shape = *shape;
    ranges->kind = params->ranges;
    ranges->threads = sl_thread_count(params->threads);
    ranges->states = params->ranges == SL_TRAIN_RANGES_LEARNED ? states : 0;
    sl_status status = alloc_numbers(ranges, params);
    if (status == SL_OK)
        *out = ranges;
    else
        sl_ranges_free(ranges);
    return status;
}

void sl_ranges_free(sl_ranges *ranges) {
    if (!ranges) return;
    sl_allocator allocator = ranges->allocator;
    sl_mem_free(&allocator, ranges->numbers, block_size(ranges));
    SL_FREE(&allocator, ranges);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Ranges
 * ------------------------------------------------------------------------------------------------------------- */

/* Sets each output's scale from its largest weight. Each thread takes a range of columns. */
static void observe_weights(const sl_ranges *ranges, size_t layer, const float *dense, float *scales) {
    size_t in = ranges->shape.width[layer], out = ranges->shape.width[layer + 1];
    const float *weights = dense + sl_net_weight_at(&ranges->shape, layer);
    size_t lines = (out + LINE - 1) / LINE, worth = in * out / WEIGHTS_OF_A_THREAD + 1;
    size_t threads = worth < ranges->threads ? worth : ranges->threads;
    threads = threads < lines ? threads : lines;
    memset(scales, 0, out * sizeof *scales);
#pragma omp parallel for num_threads((int)threads) schedule(static, 1) if (threads > 1)
    for (size_t t = 0; t < threads; t++) {
        size_t from = lines * t / threads * LINE, to = lines * (t + 1) / threads * LINE;
        to = to < out ? to : out;
        ranges->loops->peaks(weights + from, in, to - from, out, scales + from);
    }
    /* A column of zeros gets scale 1, because the scale divides. */
    for (size_t o = 0; o < out; o++)
        scales[o] = scales[o] / WEIGHT_CODES >= FLT_MIN ? scales[o] / WEIGHT_CODES : 1;
}

sl_status sl_ranges_calibrate(sl_ranges *ranges, size_t layer, const sl_observer *inputs, const float *dense) {
    const sl_observed seen = sl_observer_seen(inputs);
    const sl_range_rule rule = sl_range_rule_of(SL_CALIBRATION_MSE, 0);
    size_t in = ranges->shape.width[layer], out = ranges->shape.width[layer + 1];
    const float *weights = dense + sl_net_weight_at(&ranges->shape, layer);
    float *numbers = ranges->numbers + ranges->at[layer];
    sl_quant_range range;
    if (seen.not_finite)
        return sl_fail(SL_EVALUE,
                       "inputs of layer dense.%zu are not finite on the training rows; look for huge values in the "
                       "columns, or lower deep.rate",
                       layer);
    if (seen.low == 0 && seen.high == 0)
        return sl_fail(SL_EINVAL,
                       "all inputs of layer dense.%zu are 0 on the rows to calibrate on; give other rows, or keep the "
                       "layer in F32",
                       layer);
    SL_TRY(sl_observer_range(inputs, &rule, &range));
    numbers[LOW] = range.low < 0 ? range.low : 0;
    numbers[HIGH] = range.high > 0 ? range.high : 0;
    for (size_t o = 0; o < out && ranges->kind == SL_TRAIN_RANGES_LEARNED; o++)
        numbers[SCALES + o] = sl_column_scale(weights + o, in, out, 1);
    return SL_OK;
}

void sl_ranges_set_layers(sl_ranges *ranges, const float *dense) {
    for (size_t l = 0; l < ranges->shape.layers; l++) {
        float *numbers = ranges->numbers + ranges->at[l];
        sl_fake_layer *layer = &ranges->layers[l];
        if (!layer->is_int8) continue;
        if (ranges->kind == SL_TRAIN_RANGES_OBSERVED) observe_weights(ranges, l, dense, numbers + SCALES);
        layer->input = sl_int8_range_of(numbers[LOW], numbers[HIGH]);
        layer->scales = numbers + SCALES;
    }
}

void sl_ranges_keep_best(sl_ranges *ranges) {
    memcpy(ranges->best, ranges->numbers, ranges->size * sizeof *ranges->best);
}

int sl_ranges_are_sound(const sl_ranges *ranges, const float *numbers) {
    for (size_t l = 0; l < ranges->shape.layers; l++) {
        const float *of = numbers + ranges->at[l];
        if (!ranges->layers[l].is_int8) continue;
        if (!(isfinite(of[LOW]) && isfinite(of[HIGH]) && of[LOW] <= 0 && of[HIGH] >= 0)) return 0;
        for (size_t o = 0; o < ranges->shape.width[l + 1]; o++)
            if (!(isfinite(of[SCALES + o]) && of[SCALES + o] >= 0)) return 0;
        if (ranges->kind == SL_TRAIN_RANGES_OBSERVED) continue;
        for (size_t o = 0; o < ranges->shape.width[l + 1]; o++)
            if (of[SCALES + o] == 0) return 0;
    }
    return 1;
}

/* ---------------------------------------------------------------------------------------------------------------
 * A step
 * ------------------------------------------------------------------------------------------------------------- */

static void average_ranges(sl_ranges *ranges, const sl_net_fake *fake) {
    for (size_t l = 0; l < ranges->shape.layers; l++) {
        float *numbers = ranges->numbers + ranges->at[l];
        if (!ranges->layers[l].is_int8) continue;
        const sl_fake_seen seen = sl_net_fake_seen(fake, l);
        numbers[LOW] += NEW_SHARE * (seen.low - numbers[LOW]);
        numbers[HIGH] += NEW_SHARE * (seen.high - numbers[HIGH]);
    }
}

/* Computes the gradients by the logarithms of a layer's numbers, times LSQ's scale. A code inside the range moves with
 * the scale, which is (high - low) / 255. A clipped input moves with its end alone. */
static void range_gradients(const sl_ranges *ranges, const sl_net_fake *fake, size_t layer, float *out) {
    const float *numbers = ranges->numbers + ranges->at[layer];
    const sl_fake_sums sums = sl_net_fake_seen(fake, layer).sums;
    double scale = (double)ranges->layers[layer].input.scale, in = (double)ranges->shape.width[layer];
    double inside = sums.inside / (double)INPUT_CODES, by = 1 / sqrt(in * (double)INPUT_CODES);
    out[LOW] = (float)((double)-numbers[LOW] / scale * (inside - sums.below) * by);
    out[HIGH] = (float)((double)numbers[HIGH] / scale * (inside + sums.above) * by);
    float weights_by = (float)(1 / sqrt(in * (double)WEIGHT_CODES));
    for (size_t o = 0; o < ranges->shape.width[layer + 1]; o++)
        out[SCALES + o] = weights_by * fake->by_log_scale[layer][o];
}

static float bounded_number(double number) {
    return number < (double)LEAST_NUMBER     ? LEAST_NUMBER
           : number > (double)LARGEST_NUMBER ? LARGEST_NUMBER
                                             : (float)number;
}

/* Steps the logarithms of the numbers' magnitudes. So numbers keep their sign, and steps are relative. An end that is 0
 * stays 0. */
static void learn_ranges(sl_ranges *ranges, const sl_net_fake *fake, const sl_step *step) {
    size_t size = ranges->size;
    float *logs = ranges->room, *gradient = logs + size, *numbers = ranges->numbers;
    for (size_t l = 0; l < ranges->shape.layers; l++)
        if (ranges->layers[l].is_int8) range_gradients(ranges, fake, l, gradient + ranges->at[l]);
    for (size_t i = 0; i < size; i++)
        logs[i] = numbers[i] == 0 ? 0 : (float)log(fabs((double)numbers[i]));
    sl_step plain = *step;
    plain.l2 = 0;
    if (ranges->states == 2)
        ranges->loops->adam(logs, ranges->state, ranges->state + size, gradient, size, &plain);
    else
        ranges->loops->adagrad(logs, ranges->state, gradient, size, &plain);
    for (size_t i = 0; i < size; i++)
        if (numbers[i] != 0) numbers[i] = copysignf(bounded_number(exp((double)logs[i])), numbers[i]);
}

void sl_ranges_step(sl_ranges *ranges, const sl_net_fake *seen, const sl_step *step) {
    if (ranges->kind == SL_TRAIN_RANGES_OBSERVED)
        average_ranges(ranges, seen);
    else
        learn_ranges(ranges, seen, step);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Folding
 * ------------------------------------------------------------------------------------------------------------- */

/* Codes a layer's weights row by row, with the loop that training uses. */
static sl_status fold_layer(const sl_ranges *ranges, size_t layer, const float *dense, const sl_coded_layer *to) {
    const sl_fake_layer *from = &ranges->layers[layer];
    size_t in = ranges->shape.width[layer], out = ranges->shape.width[layer + 1];
    const float *weights = dense + sl_net_weight_at(&ranges->shape, layer);
    void *block;
    memcpy(to->biases, weights + in * out, out * sizeof *weights);
    if (!from->is_int8) {
        memcpy(to->weights, weights, in * out * sizeof *weights);
        return SL_OK;
    }
    SL_TRY(sl_mem_alloc(&ranges->allocator, 2 * out * sizeof(float), &block));
    float *units = block, *steps = units + out;
    for (size_t o = 0; o < out; o++) {
        to->scales[o] = from->scales[o];
        units[o] = 1 / to->scales[o];
    }
    for (size_t i = 0; i < in; i++) {
        ranges->loops->fake_weights(weights + i * out, 1, out, out, units, steps);
        for (size_t o = 0; o < out; o++)
            to->codes[i * out + o] = (int8_t)steps[o];
    }
    sl_mem_free(&ranges->allocator, block, 2 * out * sizeof(float));
    return SL_OK;
}

sl_status sl_ranges_fold(sl_ranges *ranges, int is_best, const float *dense, sl_coded_layers *out) {
    const sl_net_shape *shape = &ranges->shape;
    sl_layer_type types[SL_MAX_LAYERS];
    sl_int8_range inputs[SL_MAX_LAYERS];
    if (is_best) memcpy(ranges->numbers, ranges->best, ranges->size * sizeof *ranges->numbers);
    sl_ranges_set_layers(ranges, dense);
    for (size_t l = 0; l < shape->layers; l++) {
        types[l] = ranges->layers[l].is_int8 ? SL_LAYER_INT8 : SL_LAYER_F32;
        inputs[l] = ranges->layers[l].input;
    }
    SL_TRY(sl_coded_layers_create(shape, types, inputs, &ranges->allocator, out));
    for (size_t l = 0; l < shape->layers; l++) {
        const sl_coded_layer to = sl_coded_layers_at(out, shape, l);
        sl_status status = fold_layer(ranges, l, dense, &to);
        if (status == SL_OK) status = sl_coded_layers_check(out, shape, l);
        if (status == SL_OK) continue;
        sl_coded_layers_free(out, &ranges->allocator);
        return status;
    }
    return SL_OK;
}
