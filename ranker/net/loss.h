/* Losses: their values, their gradients by the logits, and the links from logits to scores. All is plain C, also the
 * exponential, so that loops vectorise and every machine gives the same bits. */
#ifndef SL_RANKER_NET_LOSS_H
#define SL_RANKER_NET_LOSS_H

#include <shortlist_rank.h>

#include <stdint.h>
#include <string.h>

/* The rows of a loss. */
typedef struct sl_loss_rows {
    size_t rows, outputs;
    const float *logits;  /* (rows, outputs) */
    const float *labels;  /* 0 or 1, the number of a class, or a value */
    const float *weights; /* one a row */
} sl_loss_rows;

/* Returns the sum of weight * loss over the rows.
 * Parameters: gradient (rows, outputs) gets weight * scale * the derivative by each logit. It may be NULL. */
double sl_loss_sum(sl_loss loss, const sl_loss_rows *rows, float scale, float *gradient);

/* Turns a row of logits into probabilities. Returns the logarithm of the sum of the logits' exponentials. */
double sl_softmax(float *values, size_t outputs);

/* Turns logits (rows, outputs) into scores, in place: by sigmoid, by softmax, or not at all. */
void sl_link(sl_loss loss, size_t outputs, size_t rows, float *values);

/* Returns exp(x) for x <= 0, within 2 units of the last place; 0 below -87. x = n ln 2 + r with |r| <= ln 2 / 2. A
 * Taylor polynomial gives e^r with a remainder below 2e-8. The exponent's bits give 2^n. */
static inline float sl_exp_negative(float x) {
    const float ln2_high = 0.693145751953125f, ln2_low = 1.42860677e-6f;
    float clamped = x > -87.0f ? x : -87.0f;
    /* Adding 1.5 * 2^23 rounds to a whole number in the low bits. */
    float shifted = clamped * 1.44269504f + 12582912.0f;
    float n = shifted - 12582912.0f;
    float r = (clamped - n * ln2_high) - n * ln2_low;
    float p = 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 127u) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    float result = p * power;
    return x > -87.0f ? result : x != x ? x : 0.0f;
}

#endif
