/* Products of bf16 inputs and bf16 weights with sums of floats, by ISA tier: one body, bf16_body.h, which a thin file a
 * tier compiles. Products of two bf16 numbers are exact. Tiers add them up in different orders, so that results differ
 * by roundings of the sums. avx512_bf16 takes numbers below 2^-126 for 0. */
#ifndef SL_RANKER_NET_BF16_H
#define SL_RANKER_NET_BF16_H

#include "ranker/net/panels.h"

#include <string.h>

/* Two inputs of an output lie in one 32-bit lane. */
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

/* y = sum + bias of each output. Sums are of groups from first_group on, group_count of them; src begins there. */
typedef struct sl_bf16_product {
    const sl_bf16_weights *weights;
    size_t first_group, group_count;
    const uint16_t *src; /* (rows, src_pitch): numbers behind the inputs are zeros, or meet zeros of the weights */
    size_t rows, src_pitch;
    const float *bias; /* as long as out rounded up to a block */
    uint16_t *numbers; /* y, or 0 if that is larger, as bf16: the next layer's inputs behind a ReLU. NULL: floats */
    float *floats;     /* y */
    size_t dst_pitch;  /* elements from one row of the outputs to the next. numbers has room for whole blocks */
} sl_bf16_product;

typedef struct sl_bf16_loops {
    const char *name;
    void (*product)(const sl_bf16_product *product);
} sl_bf16_loops;

/* As sl_loops_get and sl_loops_of. The tiers avx512vnni and amxint8 multiply by avx512_bf16 where the processor has it,
 * and else as avx512bw does. */
const sl_bf16_loops *sl_bf16_get(void);
const sl_bf16_loops *sl_bf16_of(sl_isa isa);

extern const sl_bf16_loops sl_bf16_scalar;
extern const sl_bf16_loops sl_bf16_avx2;
extern const sl_bf16_loops sl_bf16_avx512bw;
extern const sl_bf16_loops sl_bf16_avx512bf16;

#endif
