/* Loops over floats. Each tier's file compiles the body loops_body.h. Arrays need no alignment. No loop reads or writes
 * after element n, except that decoding reads after codes. A tier adds in one order, whatever the addresses. */
#ifndef SL_RANKER_NET_LOOPS_H
#define SL_RANKER_NET_LOOPS_H

#include "ranker/features/spec.h"
#include "ranker/net/int8.h"

/* The parameters of an optimiser's step. */
typedef struct sl_step {
    float rate, l2;
    float beta1, beta2, epsilon;
    float correct1, correct2; /* Adam: 1 / (1 - beta^t) */
} sl_step;

/* A product of row-major matrices: dst (rows, out) = src (rows, in) times weights (in, out). Rows of src are `stride`
 * floats apart. */
typedef struct sl_plain_product {
    const float *src, *weights, *bias; /* bias may be NULL */
    size_t stride, rows, in, out;
    float *dst;
} sl_plain_product;

/* Dropout of (rows, n) values. The hash of (seed, first_row + r, i) decides whether element i of row r is dropped. The
 * other elements are multiplied by `scale`. */
typedef struct sl_dropout {
    uint64_t seed;
    size_t first_row;
    uint32_t threshold; /* values to drop, of 65536 */
    float scale;
} sl_dropout;

/* A decoded number replaces the one in `out`, is added to it, or replaces it if it is larger. */
typedef enum sl_decode { SL_DECODE_SET, SL_DECODE_ADD, SL_DECODE_MAX } sl_decode;

/* Bytes after a row's codes that decoding may read. */
#define SL_CODES_SLACK 16u

/* Parts of one row of the first layer. Its sums before the activation are (user + item) + pair. Each part has n
 * elements. An item's element is a float, a bf16 number, or a signed byte times `item_scale`. */
typedef struct sl_first_row {
    const float *user;
    const void *item;
    const float *pair;  /* NULL: none */
    sl_dtype item_type; /* SL_F32, SL_BF16 or SL_I8 */
    float item_scale;   /* of SL_I8 */
} sl_first_row;

/* Gradients of a loss by a range of inputs. Each is a sum of the gradients by steps. See sl_loops.fake_backward. */
typedef struct sl_fake_sums {
    double inside; /* over inputs with a code: times (rounded step - step) */
    double below;  /* over inputs below the first code */
    double above;  /* over inputs above the last code */
} sl_fake_sums;

typedef struct sl_loops {
    const char *name;
    /* out[i] = act((user[i] + item[i]) (+ pair[i])). Each sum and the product with the scale is rounded once. */
    void (*join)(const sl_first_row *row, size_t n, sl_activation activation, float *out);
    void (*add)(float *to, const float *from, size_t n); /* to += from */
    void (*add_scaled)(float *to, const float *from, float factor, size_t n);
    float (*dot)(const float *a, const float *b, size_t n);
    /* out[i] = act(z[i]); z and out may be the same array */
    void (*activate)(const float *z, size_t n, sl_activation activation, float *out);
    /* values[i] = 1 / (1 + e^-values[i]), within 3 ulp; 0 below -87. NaN stays NaN. */
    void (*sigmoid)(float *values, size_t n);
    /* Multiplies gradient[i] by act'(z) in each of `rows` rows of n, and adds the columns of the result to
     * column_sums[n]. `out` is act(z), or z itself for gelu. tanh's `out` was multiplied by out_scale. */
    void (*backward)(const float *out, float *gradient, size_t rows, size_t n, sl_activation activation,
                     float out_scale, float *column_sums);
    void (*dropout)(float *values, size_t rows, size_t n, const sl_dropout *dropout);
    /* Rounds to the nearest number of `type`, BF16 or F16, ties to even. F16 ends at 65,504: 65,520 and more become
     * infinity. NaN stays NaN. */
    void (*narrow)(const float *from, size_t n, sl_dtype type, uint16_t *to);
    void (*round)(const float *from, size_t n, sl_dtype type,
                  float *to); /* the same rounding, with floats as the result */
    /* values *= factor, which is at most 1. Returns whether all values are finite. */
    int (*unscale)(float *values, size_t n, float factor);
    void (*product)(const sl_plain_product *product);
    /* Decode n codes of 8 bits or of 4: x = offset + scale * code. `how` says what x does to out[i]. Code i of 4 bits
     * is in byte i / 2: the lower half if i is even, else the upper. They read up to SL_CODES_SLACK bytes after the
     * codes. */
    void (*decode8)(const uint8_t *codes, float scale, float offset, size_t n, sl_decode how, float *out);
    void (*decode4)(const uint8_t *codes, float scale, float offset, size_t n, sl_decode how, float *out);
    /* ---- Fake quantisation (Jacob et al. 2018, arXiv 1712.05877). It replaces a number by its steps: its code less
     * the code of 0. Steps are whole numbers kept as floats, and stand for steps * scale. NaN stays NaN. ---- */
    /* Replaces inputs by their steps, with the range and codes of sl_int8_loops.quantise. An infinity becomes NaN. */
    void (*fake)(const float *values, size_t n, const sl_int8_range *range, float *steps);
    /* Turns gradients by steps into gradients by values: multiplies by 1 / scale, straight through the rounding. A
     * value more than half a step from every code gets 0. Adds to the sums. */
    void (*fake_backward)(const float *values, float *gradient, size_t n, const sl_int8_range *range,
                          sl_fake_sums *sums);
    /* The same for weights (rows, n), `stride` floats from row to row, with codes from -127 to 127. units[i] is 1 / the
     * scale of column i. The backward loop adds the gradient by the logarithm of each column's scale to by_log_scale
     * (Esser et al. 2020, arXiv 1902.08153). */
    void (*fake_weights)(const float *weights, size_t rows, size_t n, size_t stride, const float *units, float *steps);
    void (*fake_weights_backward)(const float *weights, float *gradient, size_t rows, size_t n, size_t stride,
                                  const float *units, float *by_log_scale);
    /* peaks[i] = max(peaks[i], the largest magnitude of column i). NaN is skipped. */
    void (*peaks)(const float *weights, size_t rows, size_t n, size_t stride, float *peaks);
    /* out[r][i] = sums[r][i] * factor[i] + bias[i], rounded twice, as sl_int8_product does. bias may be NULL. sums and
     * out may be the same array. */
    void (*scale)(const float *sums, size_t rows, size_t n, const float *factor, const float *bias, float *out);
    /* The same, rounded and clamped to 0..255: the next layer's steps after a ReLU. NaN and infinities give NaN. */
    void (*scale_to_steps)(const float *sums, size_t rows, size_t n, const float *factor, const float *bias,
                           float *out);
    /* Adagrad: sum += g^2, weights -= rate * g / (sqrt(sum) + epsilon), with g = gradient + l2 * weights */
    void (*adagrad)(float *weights, float *sum, const float *gradient, size_t n, const sl_step *step);
    /* Adam (Kingma and Ba 2015), with the same g. */
    void (*adam)(float *weights, float *first, float *second, const float *gradient, size_t n, const sl_step *step);
} sl_loops;

/* sl_loops_get returns the table of the tier in use, sl_cpu_tier(). sl_loops_of returns a given tier's, or NULL if this
 * machine cannot run it; tests use it. */
const sl_loops *sl_loops_get(void);
const sl_loops *sl_loops_of(sl_isa isa);

/* One for each tier. loops_table.c lists those of a build. */
extern const sl_loops sl_loops_scalar;
extern const sl_loops sl_loops_avx2;
extern const sl_loops sl_loops_avx512;

#endif
