/* Dense layers in codes: what a quantised model has of them, in memory and as a section of its file. The layers'
 * weights are there as floats too, dequantised: tensors are read by name, and training goes on from them. */
#ifndef SL_RANKER_MODEL_CODED_H
#define SL_RANKER_MODEL_CODED_H

#include "ranker/net/net.h"

/* A layer's record in the section. docs/FORMAT.md has the section's layout. */
typedef struct sl_coded_record {
    uint32_t type; /* sl_layer_type */
    float scale;   /* of INT8: of its inputs; else 0 */
    int32_t zero;
    uint32_t reserved;
} sl_coded_record;

typedef struct sl_coded {
    uint8_t *block; /* the section's bytes */
    size_t size;
    sl_layer_codes layers[SL_MAX_LAYERS]; /* point into the block */
} sl_coded;

/* The parts of a layer in the block. Writable: a maker fills them in. */
typedef struct sl_coded_layer {
    float *weights; /* (in, out) of a layer of floats; else NULL */
    float *scales;  /* one an output, of an INT8 layer; else NULL */
    int8_t *codes;  /* (in, out), likewise */
    uint16_t *bf16; /* (in, out), of a layer in bf16; else NULL */
    float *biases;
} sl_coded_layer;

/* Makes a block for layers of these types, and writes the records. inputs: the ranges of INT8 layers' inputs.
 * Errors: SL_ENOMEM. */
sl_status sl_coded_create(const sl_net_shape *shape, const sl_layer_type *types, const sl_int8_range *inputs,
                          const sl_allocator *allocator, sl_coded *out);
/* Copies the layers; without a block there is nothing to copy. Errors: SL_ENOMEM. */
sl_status sl_coded_copy(const sl_coded *from, const sl_net_shape *shape, const sl_allocator *allocator, sl_coded *out);
/* Copies the layers; those of which as_floats is set become layers of floats, with the weights of `dense`, the net's
 * block. Without a layer in codes there is nothing to copy. Errors: SL_ENOMEM. */
sl_status sl_coded_with_floats(const sl_coded *from, const sl_net_shape *shape, const int *as_floats,
                               const float *dense, const sl_allocator *allocator, sl_coded *out);
void sl_coded_free(sl_coded *coded, const sl_allocator *allocator);
sl_coded_layer sl_coded_layer_of(const sl_coded *coded, const sl_net_shape *shape, size_t layer);

/* Returns why a layer cannot be computed with, or NULL: a number that is not finite, a scale that is none, more inputs
 * than sums hold. */
const char *sl_coded_fault(const sl_coded *coded, const sl_net_shape *shape, size_t layer);
/* Refuses an INT8 layer that cannot be computed with. Errors: SL_EVALUE. */
sl_status sl_coded_check(const sl_coded *coded, const sl_net_shape *shape, size_t layer);

/* Takes a block of a file over, freed on failure too. Nothing in it is trusted. Errors: SL_ECORRUPT. */
sl_status sl_coded_read(const sl_net_shape *shape, void *block, size_t size, const sl_allocator *allocator,
                        sl_coded *out);

/* Writes all weights and biases as floats into the net's block. */
void sl_coded_weights(const sl_coded *coded, const sl_net_shape *shape, float *dense);

#endif
