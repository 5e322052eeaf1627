#include "ranker/net/net_fake.h"

#include <string.h>

/* A second thread pays from this many numbers on. */
#define NUMBERS_OF_A_THREAD ((size_t)1 << 16)
/* Floats of a cache line. No two threads write to the same line. */
#define LINE (SL_CACHE_LINE / sizeof(float))
/* Arrays for each layer's outputs. */
enum { ARRAYS = 5 };

static size_t array_size(const sl_net_shape *shape, size_t layer) {
    return sl_round_up(shape->width[layer + 1], LINE);
}

static size_t numbers_size(const sl_net_shape *shape) {
    size_t count = 0;
    for (size_t l = 0; l < shape->layers; l++)
        count += ARRAYS * array_size(shape, l);
    return count * sizeof(float);
}

static size_t seen_size(const sl_net_fake *fake) {
    return fake->threads * fake->shape.layers * sizeof *fake->seen;
}

sl_status sl_net_fake_create(const sl_net_shape *shape, size_t threads, const sl_fake_layer *layers,
                             const sl_allocator *allocator, sl_net_fake **out) {
    void *block;
    sl_status status;
    *out = NULL;
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_net_fake), &block));
    sl_net_fake *fake = block;
    fake->allocator = *allocator;
    fake->loops = sl_loops_get();
    fake->shape = *shape;
    fake->threads = threads;
    fake->layers = layers;
    SL_TRY_GOTO(sl_mem_alloc(allocator, numbers_size(shape), &block), fail);
    fake->numbers = block;
    SL_TRY_GOTO(sl_mem_alloc(allocator, seen_size(fake), &block), fail);
    fake->seen = block;
    float *at = fake->numbers;
    for (size_t l = 0; l < shape->layers; l++) {
        float **arrays[ARRAYS] = {&fake->factor[l], &fake->units[l], &fake->next_factor[l], &fake->next_bias[l],
                                  &fake->by_log_scale[l]};
        for (size_t a = 0; a < ARRAYS; a++, at += array_size(shape, l))
            *arrays[a] = at;
    }
    *out = fake;
    return SL_OK;
fail:
    sl_net_fake_free(fake);
    return status;
}

void sl_net_fake_free(sl_net_fake *fake) {
    if (!fake) return;
    sl_allocator allocator = fake->allocator;
    sl_mem_free(&allocator, fake->numbers, numbers_size(&fake->shape));
    sl_mem_free(&allocator, fake->seen, seen_size(fake));
    SL_FREE(&allocator, fake);
}

/* ---- Forward ---- */

/* Returns whether a layer's sums become the next layer's codes without floats in between, as in net_int8.c. */
static int outputs_steps(const sl_net_fake *fake, size_t layer) {
    const sl_fake_layer *next = &fake->layers[layer + 1];
    if (layer + 1 == fake->shape.layers || !fake->layers[layer].is_int8) return 0;
    return next->is_int8 && fake->shape.activation == SL_RELU && next->input.zero == 0;
}

static void fill_layer(sl_net_fake *fake, size_t l, const float *bias) {
    const sl_fake_layer *layer = &fake->layers[l];
    int makes_steps = outputs_steps(fake, l);
    fake->bias[l] = bias;
    for (size_t o = 0; o < fake->shape.width[l + 1]; o++) {
        fake->units[l][o] = 1 / layer->scales[o];
        fake->factor[l][o] = layer->input.scale * layer->scales[o];
        fake->by_log_scale[l][o] = 0;
        if (!makes_steps) continue;
        fake->next_factor[l][o] = fake->factor[l][o] / fake->layers[l + 1].input.scale;
        fake->next_bias[l][o] = bias[o] / fake->layers[l + 1].input.scale;
    }
}

static void fake_layer_weights(const sl_net_fake *fake, size_t l, const float *weights, float *steps) {
    size_t in = fake->shape.width[l], out = fake->shape.width[l + 1];
    size_t worth = in * out / NUMBERS_OF_A_THREAD + 1, threads = worth < fake->threads ? worth : fake->threads;
    if (!fake->layers[l].is_int8) {
        memcpy(steps, weights, in * out * sizeof *steps);
        return;
    }
    if (threads == 1) {
        fake->loops->fake_weights(weights, in, out, out, fake->units[l], steps);
        return;
    }
#pragma omp parallel for num_threads((int)threads) schedule(static, 1)
    for (size_t t = 0; t < threads; t++) {
        size_t from = in * t / threads, to = in * (t + 1) / threads;
        fake->loops->fake_weights(weights + from * out, to - from, out, out, fake->units[l], steps + from * out);
    }
}

void sl_net_fake_weights(sl_net_fake *fake, const float *weights, float *steps) {
    memset(fake->seen, 0, seen_size(fake));
    for (size_t l = 0; l < fake->shape.layers; l++) {
        size_t at = sl_net_weight_at(&fake->shape, l);
        if (fake->layers[l].is_int8) fill_layer(fake, l, weights + sl_net_bias_at(&fake->shape, l));
        fake_layer_weights(fake, l, weights + at, steps + at);
    }
}

void sl_net_fake_inputs(sl_net_fake *fake, size_t layer, size_t thread, const float *values, size_t n, float *steps) {
    sl_fake_seen *seen = &fake->seen[thread * fake->shape.layers + layer];
    float low, high;
    if (!fake->layers[layer].is_int8) {
        memcpy(steps, values, n * sizeof *steps);
        return;
    }
    sl_int8_get()->extent(values, n, &low, &high);
    seen->low = low < seen->low ? low : seen->low;
    seen->high = high > seen->high ? high : seen->high;
    if (layer == 0 || !outputs_steps(fake, layer - 1)) fake->loops->fake(values, n, &fake->layers[layer].input, steps);
}

void sl_net_fake_outputs(const sl_net_fake *fake, size_t layer, float *sums, size_t rows, float *next_steps) {
    size_t out = fake->shape.width[layer + 1];
    if (!fake->layers[layer].is_int8) return;
    if (outputs_steps(fake, layer))
        fake->loops->scale_to_steps(sums, rows, out, fake->next_factor[layer], fake->next_bias[layer], next_steps);
    fake->loops->scale(sums, rows, out, fake->factor[layer], fake->bias[layer], sums);
}

/* ---- Backward ---- */

void sl_net_fake_gradient(const sl_net_fake *fake, size_t layer, const float *by_outputs, size_t rows, float *operand) {
    size_t out = fake->shape.width[layer + 1];
    if (fake->layers[layer].is_int8)
        fake->loops->scale(by_outputs, rows, out, fake->factor[layer], NULL, operand);
    else
        memcpy(operand, by_outputs, rows * out * sizeof *operand);
}

void sl_net_fake_backward(sl_net_fake *fake, size_t layer, size_t thread, const float *values, float *gradient,
                          size_t n) {
    const sl_fake_layer *of = &fake->layers[layer];
    sl_fake_seen *seen = &fake->seen[thread * fake->shape.layers + layer];
    if (of->is_int8) fake->loops->fake_backward(values, gradient, n, &of->input, &seen->sums);
}

void sl_net_fake_weight_gradient(sl_net_fake *fake, size_t layer, const float *weights, float *gradient) {
    size_t in = fake->shape.width[layer], out = fake->shape.width[layer + 1];
    size_t lines = (out + LINE - 1) / LINE, worth = in * out / NUMBERS_OF_A_THREAD + 1;
    size_t threads = worth < fake->threads ? worth : fake->threads;
    if (!fake->layers[layer].is_int8) return;
    threads = threads < lines ? threads : lines;
    const float *units = fake->units[layer];
    float *by_log_scale = fake->by_log_scale[layer];
    if (threads == 1) {
        fake->loops->fake_weights_backward(weights, gradient, in, out, out, units, by_log_scale);
        return;
    }
    /* Each thread takes columns, so that their sums do not depend on the number of threads. */
#pragma omp parallel for num_threads((int)threads) schedule(static, 1)
    for (size_t t = 0; t < threads; t++) {
        size_t from = lines * t / threads * LINE, to = lines * (t + 1) / threads * LINE;
        to = to < out ? to : out;
        fake->loops->fake_weights_backward(weights + from, gradient + from, in, to - from, out, units + from,
                                           by_log_scale + from);
    }
}

sl_fake_seen sl_net_fake_seen(const sl_net_fake *fake, size_t layer) {
    sl_fake_seen all = {.low = 0};
    for (size_t t = 0; t < fake->threads; t++) {
        const sl_fake_seen *seen = &fake->seen[t * fake->shape.layers + layer];
        all.low = seen->low < all.low ? seen->low : all.low;
        all.high = seen->high > all.high ? seen->high : all.high;
        all.sums.inside += seen->sums.inside;
        all.sums.below += seen->sums.below;
        all.sums.above += seen->sums.above;
    }
    return all;
}

void sl_net_fake_set_seen(sl_net_fake *fake, size_t layer, const sl_fake_seen *seen) {
    for (size_t t = 0; t < fake->threads; t++)
        fake->seen[t * fake->shape.layers + layer] = t ? (sl_fake_seen){.low = 0} : *seen;
}
