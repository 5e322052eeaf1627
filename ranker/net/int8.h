/* Products of u8 inputs and s8 weights with sums of 32 bits, by ISA tier: one body, int8_body.h, which a thin file a
 * tier compiles. The sums are exact, and what follows them rounds in one order. Every tier therefore gives the same
 * bits. No tier saturates: those without VNNI multiply 16-bit numbers. */
#ifndef SL_RANKER_NET_INT8_H
#define SL_RANKER_NET_INT8_H

#include "ranker/net/panels.h"

/* Four inputs of an output lie in one 32-bit lane. */
#define SL_INT8_GROUP 4u
/* Inputs of a layer at most: the sum of so many products of 255 and -128 fits its 32 bits. The sum less zero * the
 * weights' sum does, too: it is one of products of -255 to 255 and the weights. */
#define SL_INT8_MOST_INPUTS ((size_t)INT32_MAX / (255 * 128))

/* Weights (in, out), packed in panels. */
typedef struct sl_int8_weights {
    size_t in, out;
    int8_t *codes;
    int32_t *column_sums; /* of each output's weights; out rounded up to a block */
    size_t bytes;         /* of codes */
} sl_int8_weights;

static inline size_t sl_int8_groups(size_t inputs) {
    return (inputs + SL_INT8_GROUP - 1) / SL_INT8_GROUP;
}

/* Bytes of a row of u8 inputs: whole groups. */
static inline size_t sl_int8_pitch(size_t inputs) {
    return sl_int8_groups(inputs) * SL_INT8_GROUP;
}

/* Packs row-major codes (in, out) of at most SL_INT8_MOST_INPUTS inputs. Errors: SL_ENOMEM. */
sl_status sl_int8_pack(const int8_t *codes, size_t in, size_t out, const sl_allocator *allocator, sl_int8_weights *to);
void sl_int8_weights_free(sl_int8_weights *weights, const sl_allocator *allocator);

/* u8 = zero + value / scale, rounded to the nearest and cut to 0..255. */
typedef struct sl_int8_range {
    float scale;
    int32_t zero;
} sl_int8_range;

/* y = (sum - less) * factor + bias of each output, where sum is that of the inputs' products, less[o] = zero *
 * column_sums[o]. With `own`, row r has the range own[r] instead, y = (sum - own[r].zero * column_sums[o]) *
 * (own[r].scale * factor[o]) + bias[o]. Sums are of groups from first_group on, group_count of them; src begins there.
 * Arrays of outputs are as long as out rounded up to a block. */
typedef struct sl_int8_product {
    const sl_int8_weights *weights;
    size_t first_group, group_count;
    const uint8_t *src; /* (rows, src_pitch): bytes behind the inputs are zeros, or meet zeros of the weights */
    size_t rows, src_pitch;
    const int32_t *less; /* or the column sums where `own` is set */
    const float *factor, *bias;
    const sl_int8_range *own;
    uint8_t *codes;   /* y rounded and cut to 0..255: the next layer's inputs behind a ReLU; NULL: floats are wanted */
    float *floats;    /* y */
    size_t dst_pitch; /* elements from one row of the outputs to the next. codes has room for whole blocks */
} sl_int8_product;

typedef struct sl_int8_loops {
    const char *name;
    void (*product)(const sl_int8_product *product);
    /* codes[i] = values[i] as u8 by the range. NaN becomes 0. */
    void (*quantise)(const float *values, size_t n, const sl_int8_range *range, uint8_t *codes);
    /* The least and the largest of the values and 0. NaN is passed over. */
    void (*extent)(const float *values, size_t n, float *low, float *high);
} sl_int8_loops;

/* As sl_loops_get and sl_loops_of. */
const sl_int8_loops *sl_int8_get(void);
const sl_int8_loops *sl_int8_of(sl_isa isa);

/* Gives the range whose codes 0 to 255 span low to high. 0 is a code of its own. Both limits may be 0. If a
 * limit is infinite, the range is of scale 1: such values have no codes. */
sl_int8_range sl_int8_range_of(float low, float high);

extern const sl_int8_loops sl_int8_scalar;
extern const sl_int8_loops sl_int8_avx2;
extern const sl_int8_loops sl_int8_avxvnni;
extern const sl_int8_loops sl_int8_avx512bw;
extern const sl_int8_loops sl_int8_avx512vnni;

#endif
