#include "ranker/net/column_scale.h"

#include <float.h>
#include <math.h>

/* Clips to try for the least squared error. Each is a hundredth of the largest weight below the one before. */
enum { CLIPS = 50 };

int8_t sl_weight_code(float weight, float scale) {
    float code = rintf(weight / scale);
    return (int8_t)(code > 127 ? 127 : code < -127 ? -127 : code);
}

static double clip_error(const float *weights, size_t in, size_t stride, float scale) {
    double error = 0;
    for (size_t i = 0; i < in; i++) {
        double off = (double)weights[i * stride] - (double)sl_weight_code(weights[i * stride], scale) * (double)scale;
        error += off * off;
    }
    return error;
}

float sl_column_scale(const float *weights, size_t in, size_t stride, int by_error) {
    float most = 0, best;
    for (size_t i = 0; i < in; i++)
        most = fabsf(weights[i * stride]) > most ? fabsf(weights[i * stride]) : most;
    /* A column of zeros has scale 1, so that callers can divide by it. */
    if (!(most / 127 >= FLT_MIN)) return 1;
    best = most / 127;
    double least = by_error ? clip_error(weights, in, stride, best) : 0;
    for (size_t step = 1; by_error && step < CLIPS; step++) {
        float scale = most / 127 * (1 - (float)step / 100);
        double error = clip_error(weights, in, stride, scale);
        if (error >= least) continue;
        least = error;
        best = scale;
    }
    return best;
}
