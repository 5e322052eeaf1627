#include "ranker/train/magnitude_pruning.h"

#include <string.h>

/* The bits of a positive float rise with its value. So magnitudes compare by their bits: by the upper 16 first, then by
 * the lower 16. */
#define HALF ((size_t)1 << 16)
#define SIGN 0x7fffffffu

sl_status sl_magnitude_create(const sl_net_shape *shape, double share, uint64_t steps, int per_layer,
                              const sl_allocator *allocator, sl_magnitude **out) {
    void *block;
    *out = NULL;
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_magnitude), &block));
    sl_magnitude *magnitude = block;
    magnitude->allocator = *allocator;
    magnitude->shape = *shape;
    magnitude->share = share;
    magnitude->steps = steps;
    magnitude->per_layer = per_layer;
    sl_status status = sl_mem_alloc(allocator, sl_net_size(shape), &block);
    if (status == SL_OK) {
        magnitude->was_zero = block;
        status = sl_mem_alloc(allocator, HALF * sizeof *magnitude->counts, &block);
    }
    if (status != SL_OK) {
        sl_magnitude_free(magnitude);
        return status;
    }
    magnitude->counts = block;
    *out = magnitude;
    return SL_OK;
}

void sl_magnitude_free(sl_magnitude *magnitude) {
    if (!magnitude) return;
    sl_allocator allocator = magnitude->allocator;
    sl_mem_free(&allocator, magnitude->was_zero, sl_net_size(&magnitude->shape));
    SL_FREE_ARRAY(&allocator, magnitude->counts, HALF);
    SL_FREE(&allocator, magnitude);
}

static uint32_t bits_of(float weight) {
    uint32_t bits;
    memcpy(&bits, &weight, sizeof bits);
    return bits & SIGN;
}

/* Layers `from` to `to` - 1. */
typedef struct span {
    size_t from, to;
} span;

static size_t weights_of(const sl_net_shape *shape, span layers) {
    size_t count = 0;
    for (size_t l = layers.from; l < layers.to; l++)
        count += shape->width[l] * shape->width[l + 1];
    return count;
}

/* Counts the weights by the upper half of their bits. With `upper`, it counts only weights with that upper half, by
 * their lower half. */
static void count_weights(sl_magnitude *magnitude, const float *dense, span layers, const uint32_t *upper) {
    memset(magnitude->counts, 0, HALF * sizeof *magnitude->counts);
    for (size_t l = layers.from; l < layers.to; l++) {
        size_t begin = sl_net_weight_at(&magnitude->shape, l), end = sl_net_bias_at(&magnitude->shape, l);
        for (size_t i = begin; i < end; i++) {
            uint32_t bits = bits_of(dense[i]);
            if (!upper)
                magnitude->counts[bits >> 16]++;
            else if (bits >> 16 == *upper)
                magnitude->counts[bits & 0xffffu]++;
        }
    }
}

/* Finds the half of the weight with rank *before (from 0). *before becomes the rank within that half. */
static uint32_t find_half(const sl_magnitude *magnitude, size_t *before) {
    uint32_t half = 0;
    while (*before >= magnitude->counts[half])
        *before -= magnitude->counts[half++];
    return half;
}

/* Sets the `count` smallest weights of the layers to 0. The first ones go if weights are equal. */
static void cut_smallest(sl_magnitude *magnitude, float *dense, span layers, size_t count) {
    if (!count) return;
    size_t equal = count - 1;
    count_weights(magnitude, dense, layers, NULL);
    uint32_t upper = find_half(magnitude, &equal);
    count_weights(magnitude, dense, layers, &upper);
    uint32_t limit = upper << 16 | find_half(magnitude, &equal);
    /* All weights below the limit go, and equal + 1 of the weights at the limit. */
    for (size_t l = layers.from; l < layers.to; l++) {
        size_t begin = sl_net_weight_at(&magnitude->shape, l), end = sl_net_bias_at(&magnitude->shape, l);
        for (size_t i = begin; i < end; i++) {
            uint32_t bits = bits_of(dense[i]);
            if (bits > limit || (bits == limit && equal == SIZE_MAX)) continue;
            equal -= bits == limit;
            dense[i] = 0;
        }
    }
}

void sl_magnitude_cut(sl_magnitude *magnitude, float *dense, double share) {
    const sl_net_shape *shape = &magnitude->shape;
    size_t stride = magnitude->per_layer ? 1 : shape->layers;
    for (size_t l = 0; l < shape->layers; l += stride) {
        span layers = {l, l + stride};
        cut_smallest(magnitude, dense, layers, (size_t)(share * (double)weights_of(shape, layers)));
    }
}

void sl_magnitude_note_zeros(sl_magnitude *magnitude, const float *dense) {
    const sl_net_shape *shape = &magnitude->shape;
    for (size_t l = 0; l < shape->layers; l++) {
        size_t begin = sl_net_weight_at(shape, l), end = sl_net_bias_at(shape, l);
        for (size_t i = begin; i < end; i++)
            magnitude->was_zero[i] = dense[i] == 0;
    }
}

void sl_magnitude_restore_and_cut(sl_magnitude *magnitude, float *dense, uint64_t step) {
    const sl_net_shape *shape = &magnitude->shape;
    for (size_t l = 0; l < shape->layers; l++) {
        size_t begin = sl_net_weight_at(shape, l), end = sl_net_bias_at(shape, l);
        for (size_t i = begin; i < end; i++)
            dense[i] = magnitude->was_zero[i] ? 0 : dense[i];
    }
    if (step >= magnitude->steps) return;
    uint64_t cuts = magnitude->steps < SL_MAGNITUDE_CUTS ? magnitude->steps : SL_MAGNITUDE_CUTS;
    if ((step + 1) * cuts / magnitude->steps == step * cuts / magnitude->steps) return;
    double left = 1 - (double)(step + 1) / (double)magnitude->steps;
    sl_magnitude_cut(magnitude, dense, magnitude->share * (1 - left * left * left));
}
