/* Products of u8 inputs and s8 weights, summed in 32 bits. Each tier's file compiles the body int8_body.h. Sums are
 * exact, and the steps after them round in one order. So every tier gives the same bits. No tier saturates: tiers
 * without VNNI multiply 16-bit numbers. */
#ifndef SL_RANKER_NET_INT8_H
#define SL_RANKER_NET_INT8_H

#include "ranker/net/panels.h"

/* A 32-bit lane holds four inputs of one output. */
#define SL_INT8_GROUP 4u
/* The most inputs of a layer. A sum of so many products of 255 and -128 fits into 32 bits. So does the sum less zero *
 * the weights' sum, because it is a sum of products of -255 to 255 and the weights. */
#define SL_INT8_MAX_INPUTS ((size_t)INT32_MAX / (255 * 128))

/* Weights (in, out), packed in panels. */
typedef struct sl_int8_weights {
    size_t in, out;
    int8_t *codes;
    int32_t *column_sums; /* sum of each output's weights; length: out rounded up to a block */
    size_t bytes;         /* size of `codes` */
} sl_int8_weights;

static inline size_t sl_int8_groups(size_t inputs) {
    return (inputs + SL_INT8_GROUP - 1) / SL_INT8_GROUP;
}

/* Bytes of a row of u8 inputs: whole groups. */
static inline size_t sl_int8_pitch(size_t inputs) {
    return sl_int8_groups(inputs) * SL_INT8_GROUP;
}

/* Packs row-major codes (in, out) of at most SL_INT8_MAX_INPUTS inputs. Errors: SL_ENOMEM. */
sl_status sl_int8_pack(const int8_t *codes, size_t in, size_t out, const sl_allocator *allocator, sl_int8_weights *to);
void sl_int8_weights_free(sl_int8_weights *weights, const sl_allocator *allocator);

/* The code of a value: u8 = zero + value / scale, rounded to nearest and clamped to 0..255. */
typedef struct sl_int8_range {
    float scale;
    int32_t zero;
} sl_int8_range;

/* y = (sum - zero_sums[o]) * factor[o] + bias[o] for each output o. The sum is that of the inputs' products, and
 * zero_sums[o] = zero * column_sums[o]. With `row_ranges`, row r has the range row_ranges[r]: y = (sum -
 * row_ranges[r].zero * column_sums[o]) * (row_ranges[r].scale * factor[o]) + bias[o]. The sum is over group_count
 * groups from first_group on; src begins at the first of them. Arrays of outputs have the length of out rounded up to a
 * block. */
typedef struct sl_int8_product {
    const sl_int8_weights *weights;
    size_t first_group, group_count;
    const uint8_t *src; /* (rows, src_pitch): bytes after the inputs are zeros, or their weights are */
    size_t rows, src_pitch;
    const int32_t *zero_sums; /* with row_ranges: the column sums */
    const float *factor, *bias;
    const sl_int8_range *row_ranges; /* NULL: one range for all rows */
    uint8_t *codes;   /* y rounded and clamped to 0..255: the next layer's inputs after a ReLU; NULL: the result goes to
                         `floats` */
    float *floats;    /* y */
    size_t dst_pitch; /* elements from one row of outputs to the next; codes has room for whole blocks */
} sl_int8_product;

typedef struct sl_int8_loops {
    const char *name;
    void (*product)(const sl_int8_product *product);
    /* codes[i] = the code of values[i] in the range. NaN becomes 0. */
    void (*quantise)(const float *values, size_t n, const sl_int8_range *range, uint8_t *codes);
    /* The minimum and maximum of the values and 0. NaN is skipped. */
    void (*extent)(const float *values, size_t n, float *low, float *high);
} sl_int8_loops;

/* Like sl_loops_get and sl_loops_of. */
const sl_int8_loops *sl_int8_get(void);
const sl_int8_loops *sl_int8_of(sl_isa isa);

/* Returns the range whose codes 0 to 255 span low to high. 0 is exactly a code. Both limits may be 0. If a limit is
 * infinite, the scale is 1, because such values have no codes. */
sl_int8_range sl_int8_range_of(float low, float high);

extern const sl_int8_loops sl_int8_scalar;
extern const sl_int8_loops sl_int8_avx2;
extern const sl_int8_loops sl_int8_avxvnni;
extern const sl_int8_loops sl_int8_avx512bw;
extern const sl_int8_loops sl_int8_avx512vnni;

#endif
