/* Loops over floats, by ISA tier: one body, loops_body.h, compiled by a thin file a tier. No array needs to be aligned,
 * and nothing is read or written behind n. Sums are in an order that depends on the tier, not on the addresses. */
#ifndef SL_RANKER_LOOPS_H
#define SL_RANKER_LOOPS_H

#include "ranker/spec.h"

/* Numbers of a step that an optimiser needs. */
typedef struct sl_step {
    float rate, l2;
    float beta1, beta2, epsilon;
    float correct1, correct2; /* Adam: 1 / (1 - beta^t) */
} sl_step;

/* A product of plain matrices: dst (rows, out) = src (rows, in; `stride` floats apart) times weights (in, out). */
typedef struct sl_plain_product {
    const float *src, *weights, *bias; /* bias NULL: none */
    size_t stride, rows, in, out;
    float *dst;
} sl_plain_product;

/* What dropout drops of (rows, n) values: element i of row r goes where the hash of (seed, first_row + r, i) says; what
 * stays is multiplied by `scale`. */
typedef struct sl_dropout {
    uint64_t seed;
    size_t first_row;
    uint32_t threshold; /* of 65536: as many are dropped */
    float scale;
} sl_dropout;

typedef struct sl_loops {
    const char *name;
    /* out[i] = act(user[i] + item[i] (+ pair[i])) */
    void (*join)(const float *user, const float *item, const float *pair, size_t n, sl_activation activation,
                 float *out);
    void (*add)(float *to, const float *from, size_t n); /* to += from */
    void (*add_scaled)(float *to, const float *from, float factor, size_t n);
    float (*dot)(const float *a, const float *b, size_t n);
    /* out[i] = act(z[i]); the two may be one array */
    void (*activate)(const float *z, size_t n, sl_activation activation, float *out);
    /* values[i] = 1 / (1 + e^-values[i]), within 3 ulp; 0 below -87. NaN stays NaN. */
    void (*sigmoid)(float *values, size_t n);
    /* gradient[i] *= act'(z) in each of `rows` rows of n, where out[i] = act(z), of gelu z itself; the columns' sums of
     * what results are added to column_sums[n]. out_scale is what tanh's out was multiplied by. */
    void (*backward)(const float *out, float *gradient, size_t rows, size_t n, sl_activation activation,
                     float out_scale, float *column_sums);
    void (*dropout)(float *values, size_t rows, size_t n, const sl_dropout *dropout);
    void (*product)(const sl_plain_product *product);
    /* sum += g^2, weights -= rate * g / (sqrt(sum) + epsilon), where g = gradient + l2 * weights */
    void (*adagrad)(float *weights, float *sum, const float *gradient, size_t n, const sl_step *step);
    /* The moments as Kingma and Ba 2015, of the same g. */
    void (*adam)(float *weights, float *first, float *second, const float *gradient, size_t n, const sl_step *step);
} sl_loops;

/* The tier's table, chosen once by sl_cpu_tier(); of a given tier, for tests: NULL where this machine cannot run it. */
const sl_loops *sl_loops_get(void);
const sl_loops *sl_loops_of(sl_isa isa);

/* One a tier; loops.c knows which of them a build holds. */
extern const sl_loops sl_loops_scalar;
extern const sl_loops sl_loops_avx2;
extern const sl_loops sl_loops_avx512;

#endif
