/* Loops over floats, by ISA tier: one body, loops_body.h, which a thin file a tier compiles. Arrays need no alignment,
 * and nothing behind n is read or written, except behind codes. The order of a sum depends on the tier, not on
 * addresses. */
#ifndef SL_RANKER_NET_LOOPS_H
#define SL_RANKER_NET_LOOPS_H

#include "ranker/features/spec.h"
#include "ranker/net/int8.h"

/* The numbers of an optimiser's step. */
typedef struct sl_step {
    float rate, l2;
    float beta1, beta2, epsilon;
    float correct1, correct2; /* Adam: 1 / (1 - beta^t) */
} sl_step;

/* A product of plain matrices: dst (rows, out) = src (rows, in) times weights (in, out). Rows of src lie `stride`
 * floats apart. */
typedef struct sl_plain_product {
    const float *src, *weights, *bias; /* bias may be NULL */
    size_t stride, rows, in, out;
    float *dst;
} sl_plain_product;

/* Dropout of (rows, n) values. The hash of (seed, first_row + r, i) decides whether element i of row r is dropped.
 * Values that stay are multiplied by `scale`. */
typedef struct sl_dropout {
    uint64_t seed;
    size_t first_row;
    uint32_t threshold; /* how many of 65536 values are dropped */
    float scale;
} sl_dropout;

/* A decoded number replaces the one in `out`, is added to it, or the larger of both stays. */
typedef enum sl_decode { SL_DECODE_SET, SL_DECODE_ADD, SL_DECODE_MAX } sl_decode;

/* Bytes behind the codes of a row that decoding may read. */
#define SL_CODES_SLACK 16u

/* Parts of one row of the first layer: its sums before the activation are (user + item) + pair. Each part has n
 * elements. An item's element is a float, a bf16 number, or a signed byte times `scale`. */
typedef struct sl_first_row {
    const float *user;
    const void *item;
    const float *pair;  /* NULL: none */
    sl_dtype item_type; /* SL_F32, SL_BF16 or SL_I8 */
    float item_scale;   /* of SL_I8 */
} sl_first_row;

/* Gradients of a loss by a range of inputs, in parts: sums of the gradients by steps. See sl_loops.fake_backward. */
typedef struct sl_fake_sums {
    double inside; /* of inputs that have a code: times rounded step less step */
    double below;  /* of inputs below the first code */
    double above;  /* of inputs above the last code */
} sl_fake_sums;

typedef struct sl_loops {
    const char *name;
    /* out[i] = act((user[i] + item[i]) (+ pair[i])), each sum and the product with the scale rounded once */
    void (*join)(const sl_first_row *row, size_t n, sl_activation activation, float *out);
    void (*add)(float *to, const float *from, size_t n); /* to += from */
    void (*add_scaled)(float *to, const float *from, float factor, size_t n);
    float (*dot)(const float *a, const float *b, size_t n);
    /* out[i] = act(z[i]); the two may be one array */
    void (*activate)(const float *z, size_t n, sl_activation activation, float *out);
    /* values[i] = 1 / (1 + e^-values[i]), within 3 ulp; 0 below -87. NaN stays NaN. */
    void (*sigmoid)(float *values, size_t n);
    /* Multiplies gradient[i] by act'(z) in each of `rows` rows of n. `out` is act(z), but z itself for gelu. The sums
     * of the results' columns are added to column_sums[n]. out_scale is the factor that tanh's `out` was multiplied by.
     * */
    void (*backward)(const float *out, float *gradient, size_t rows, size_t n, sl_activation activation,
                     float out_scale, float *column_sums);
    void (*dropout)(float *values, size_t rows, size_t n, const sl_dropout *dropout);
    /* Rounds to the nearest number of `type`, BF16 or F16, ties to even. F16 has no number above 65,504: from 65,520 on
     * the result is infinity. NaN stays NaN. */
    void (*narrow)(const float *from, size_t n, sl_dtype type, uint16_t *to);
    void (*round)(const float *from, size_t n, sl_dtype type, float *to); /* the same numbers, kept as floats */
    /* values *= factor, which is at most 1. Tells whether all values are finite. */
    int (*unscale)(float *values, size_t n, float factor);
    void (*product)(const sl_plain_product *product);
    /* Decodes n codes of 8 bits, or of 4: x = offset + scale * code, and x goes into out[i] as `how` says. Code i of 4
     * bits is the lower half of byte i / 2 where i is even. Up to SL_CODES_SLACK bytes behind the codes are read. */
    void (*decode8)(const uint8_t *codes, float scale, float offset, size_t n, sl_decode how, float *out);
    void (*decode4)(const uint8_t *codes, float scale, float offset, size_t n, sl_decode how, float *out);
    /* ---- Fake quantisation (Jacob et al. 2018, arXiv 1712.05877). A number is replaced by its steps: its code less
     * the code of 0, a whole number kept as a float, which stands for steps * scale. NaN stays NaN. ---- */
    /* Inputs by the range of sl_int8_loops.quantise, and to the same codes. An infinity becomes NaN. */
    void (*fake)(const float *values, size_t n, const sl_int8_range *range, float *steps);
    /* Turns gradients by the steps of values into gradients by the values: times 1 / scale, straight through the
     * rounding. A value with no code within half a step gets 0. Adds to the sums. */
    void (*fake_backward)(const float *values, float *gradient, size_t n, const sl_int8_range *range,
                          sl_fake_sums *sums);
    /* The same for weights (rows, n), `stride` floats from row to row, whose codes are from -127 to 127. units[i] is 1
     * / the scale of column i. Adds the gradient by the logarithm of each column's scale to by_log_scale (Esser et al.
     * 2020, arXiv 1902.08153). */
    void (*fake_weights)(const float *weights, size_t rows, size_t n, size_t stride, const float *units, float *steps);
    void (*fake_weights_backward)(const float *weights, float *gradient, size_t rows, size_t n, size_t stride,
                                  const float *units, float *by_log_scale);
    /* peaks[i] becomes the largest magnitude of column i, where that is larger. NaN is passed over. */
    void (*peaks)(const float *weights, size_t rows, size_t n, size_t stride, float *peaks);
    /* out[r][i] = sums[r][i] * factor[i] + bias[i], rounded twice, as sl_int8_product does. bias NULL: none. The two
     * may be one array. */
    void (*scale)(const float *sums, size_t rows, size_t n, const float *factor, const float *bias, float *out);
    /* The same, rounded and cut to 0..255: the next layer's steps behind a ReLU. Other than finite numbers give NaN. */
    void (*scale_to_steps)(const float *sums, size_t rows, size_t n, const float *factor, const float *bias,
                           float *out);
    /* sum += g^2, weights -= rate * g / (sqrt(sum) + epsilon), with g = gradient + l2 * weights */
    void (*adagrad)(float *weights, float *sum, const float *gradient, size_t n, const sl_step *step);
    /* The moments of Kingma and Ba 2015, of the same g. */
    void (*adam)(float *weights, float *first, float *second, const float *gradient, size_t n, const sl_step *step);
} sl_loops;

/* Returns the table of the tier in use, sl_cpu_tier(). sl_loops_of returns that of a given tier, or NULL if this
 * machine cannot run it; tests use it. */
const sl_loops *sl_loops_get(void);
const sl_loops *sl_loops_of(sl_isa isa);

/* One for each tier; loops.c knows which of them a build holds. */
extern const sl_loops sl_loops_scalar;
extern const sl_loops sl_loops_avx2;
extern const sl_loops sl_loops_avx512;

#endif
