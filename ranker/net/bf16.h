/* Products of bf16 inputs and bf16 weights, summed in floats. Each tier's file compiles the body bf16_body.h. A product
 * of two bf16 numbers is exact. Tiers add in different orders, so results differ by the rounding of sums. avx512_bf16
 * reads numbers below 2^-126 as 0. */
#ifndef SL_RANKER_NET_BF16_H
#define SL_RANKER_NET_BF16_H

#include "ranker/net/panels.h"

#include <string.h>

/* A 32-bit lane holds two inputs of one output. */
#define SL_BF16_GROUP 2u

/* Weights (in, out), packed in panels. */
typedef struct sl_bf16_weights {
    size_t in, out;
    uint16_t *numbers;
    size_t bytes;
} sl_bf16_weights;

static inline size_t sl_bf16_groups(size_t inputs) {
    return (inputs + SL_BF16_GROUP - 1) / SL_BF16_GROUP;
}

static inline float sl_bf16_value(uint16_t number) {
    uint32_t bits = (uint32_t)number << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Packs row-major numbers (in, out). Errors: SL_ENOMEM. */
sl_status sl_bf16_pack(const uint16_t *numbers, size_t in, size_t out, const sl_allocator *allocator,
                       sl_bf16_weights *to);
void sl_bf16_weights_free(sl_bf16_weights *weights, const sl_allocator *allocator);

/* y = sum + bias for each output. The sum is over group_count groups from first_group on; src begins at the first of
 * them. */
typedef struct sl_bf16_product {
    const sl_bf16_weights *weights;
    size_t first_group, group_count;
    const uint16_t *src; /* (rows, src_pitch): numbers after the inputs are zeros, or their weights are */
    size_t rows, src_pitch;
    const float *bias; /* length: out rounded up to a block */
    uint16_t *numbers; /* max(y, 0) as bf16: the next layer's inputs after a ReLU. NULL: the result goes to `floats` */
    float *floats;     /* y */
    size_t dst_pitch;  /* elements from one row of outputs to the next; numbers has room for whole blocks */
} sl_bf16_product;

typedef struct sl_bf16_loops {
    const char *name;
    void (*product)(const sl_bf16_product *product);
} sl_bf16_loops;

/* Like sl_loops_get and sl_loops_of. The tiers avx512vnni and amxint8 use avx512_bf16 if the processor has it, else
 * avx512bw. */
const sl_bf16_loops *sl_bf16_get(void);
const sl_bf16_loops *sl_bf16_of(sl_isa isa);

extern const sl_bf16_loops sl_bf16_scalar;
extern const sl_bf16_loops sl_bf16_avx2;
extern const sl_bf16_loops sl_bf16_avx512bw;
extern const sl_bf16_loops sl_bf16_avx512bf16;

#endif
