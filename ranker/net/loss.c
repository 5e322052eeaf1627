#include "ranker/net/loss.h"

#include "ranker/net/loops.h"

#include <math.h>

/* Rows whose losses are held as floats before they are summed in double. */
#define BLOCK_ROWS 64u

/* Returns log(1 + e) for e in [0, 1], as 2 atanh(e / (2 + e)). s is at most 1/3, so the series' remainder is below
 * 2e-9. */
static inline float log1p_unit(float e) {
    float s = e / (2.0f + e), q = s * s;
    float p = 1.0f / 15.0f;
    p = p * q + 1.0f / 13.0f;
    p = p * q + 1.0f / 11.0f;
    p = p * q + 1.0f / 9.0f;
    p = p * q + 1.0f / 7.0f;
    p = p * q + 1.0f / 5.0f;
    p = p * q + 1.0f / 3.0f;
    p = p * q + 1.0f;
    return 2.0f * s * p;
}

/* Returns 1 / (1 + e^-z), given e = e^-|z|, which cannot overflow. */
static inline float sigmoid(float z, float e) {
    return (z >= 0 ? 1.0f : e) / (1.0f + e);
}

static void logistic_block(const float *restrict logits, const float *restrict labels, const float *restrict weights,
                           size_t rows, float scale, float *restrict losses, float *restrict gradient) {
    for (size_t i = 0; i < rows; i++) {
        float z = logits[i], e = sl_exp_negative(-fabsf(z));
        losses[i] = weights[i] * ((z > 0 ? z : 0) - z * labels[i] + log1p_unit(e));
        gradient[i] = weights[i] * scale * (sigmoid(z, e) - labels[i]);
    }
}

static void squared_block(const float *restrict logits, const float *restrict labels, const float *restrict weights,
                          size_t rows, float scale, float *restrict losses, float *restrict gradient) {
    for (size_t i = 0; i < rows; i++) {
        float off = logits[i] - labels[i];
        losses[i] = weights[i] * off * off;
        gradient[i] = weights[i] * scale * 2.0f * off;
    }
}

/* Subtracts the largest logit first, so that no exponential overflows. */
double sl_softmax(float *values, size_t outputs) {
    float most = values[0], sum = 0;
    for (size_t o = 1; o < outputs; o++)
        most = values[o] > most ? values[o] : most;
    for (size_t o = 0; o < outputs; o++) {
        values[o] = sl_exp_negative(values[o] - most);
        sum += values[o];
    }
    for (size_t o = 0; o < outputs; o++)
        values[o] /= sum;
    return (double)most + log((double)sum);
}

static double multiclass_sum(const sl_loss_rows *rows, float scale, float *gradient) {
    float scratch[SL_MAX_CLASSES];
    double total = 0;
    size_t outputs = rows->outputs;
    for (size_t r = 0; r < rows->rows; r++) {
        const float *row = rows->logits + r * outputs;
        float *out = gradient ? gradient + r * outputs : scratch;
        size_t label = (size_t)rows->labels[r];
        memcpy(out, row, outputs * sizeof *out);
        total += (double)rows->weights[r] * (sl_softmax(out, outputs) - (double)row[label]);
        if (!gradient) continue;
        out[label] -= 1.0f;
        for (size_t o = 0; o < outputs; o++)
            out[o] *= rows->weights[r] * scale;
    }
    return total;
}

double sl_loss_sum(sl_loss loss, const sl_loss_rows *rows, float scale, float *gradient) {
    if (loss == SL_LOSS_MULTICLASS) return multiclass_sum(rows, scale, gradient);
    float losses[BLOCK_ROWS], unused[BLOCK_ROWS];
    double total = 0;
    for (size_t at = 0; at < rows->rows; at += BLOCK_ROWS) {
        size_t count = rows->rows - at < BLOCK_ROWS ? rows->rows - at : BLOCK_ROWS;
        const float *logits = rows->logits + at, *labels = rows->labels + at, *weights = rows->weights + at;
        float *out = gradient ? gradient + at : unused;
        if (loss == SL_LOSS_LOGISTIC)
            logistic_block(logits, labels, weights, count, scale, losses, out);
        else
            squared_block(logits, labels, weights, count, scale, losses, out);
        for (size_t i = 0; i < count; i++)
            total += (double)losses[i];
    }
    return total;
}

void sl_link(sl_loss loss, size_t outputs, size_t rows, float *values) {
    if (loss == SL_LOSS_LOGISTIC)
        sl_loops_get()->sigmoid(values, rows);
    else if (loss == SL_LOSS_MULTICLASS)
        for (size_t r = 0; r < rows; r++)
            (void)sl_softmax(values + r * outputs, outputs);
}
