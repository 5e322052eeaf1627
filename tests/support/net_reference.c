#include "tests/support/net_reference.h"

#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

float *reference_numbers(size_t count, double scale, uint64_t seed) {
    float *numbers = malloc((count + 1) * sizeof *numbers);
    for (size_t i = 0; i < count; i++)
        numbers[i] = (float)(scale * (2 * sl_random_unit(seed, i) - 1));
    return numbers;
}

float *reference_weights(const sl_net_shape *shape, uint64_t seed) {
    float *weights = reference_numbers(sl_net_size(shape), 1, seed);
    for (size_t l = 0; l < shape->layers; l++) {
        float scale = sqrtf(3.0f / (float)shape->width[l]);
        for (size_t i = sl_net_weight_at(shape, l); i < sl_net_bias_at(shape, l); i++)
            weights[i] *= scale;
    }
    return weights;
}

double reference_act(double z, sl_activation activation) {
    switch (activation) {
    case SL_RELU:
        return z > 0 ? z : 0;
    case SL_GELU:
        return z * 0.5 * (1 + erf(z * sqrt(0.5)));
    case SL_TANH:
        return tanh(z);
    case SL_LINEAR:
        break;
    }
    return z;
}

void reference_forward(const sl_net_shape *shape, const double *weights, const double *inputs, double *out) {
    size_t widest = 0;
    for (size_t l = 0; l <= shape->layers; l++)
        widest = shape->width[l] > widest ? shape->width[l] : widest;
    double *x = malloc(widest * sizeof *x), *y = malloc(widest * sizeof *y);
    memcpy(x, inputs, shape->width[0] * sizeof *x);
    for (size_t l = 0; l < shape->layers; l++) {
        const double *matrix = weights + sl_net_weight_at(shape, l), *bias = weights + sl_net_bias_at(shape, l);
        for (size_t o = 0; o < shape->width[l + 1]; o++) {
            double sum = bias[o];
            for (size_t i = 0; i < shape->width[l]; i++)
                sum += x[i] * matrix[i * shape->width[l + 1] + o];
            y[o] = l + 1 < shape->layers ? reference_act(sum, shape->activation) : sum;
        }
        double *swap = x;
        x = y;
        y = swap;
    }
    memcpy(out, x, shape->width[shape->layers] * sizeof *out);
    free(x);
    free(y);
}

double *reference_doubles(const float *from, size_t count) {
    double *numbers = malloc((count + 1) * sizeof *numbers);
    for (size_t i = 0; i < count; i++)
        numbers[i] = (double)from[i];
    return numbers;
}
