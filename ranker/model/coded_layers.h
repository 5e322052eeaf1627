/* Coded dense layers of a quantised model, in memory and as a section of its file. The model also has their weights as
 * floats, dequantised: callers read tensors by name, and training continues from them. */
#ifndef SL_RANKER_MODEL_CODED_LAYERS_H
#define SL_RANKER_MODEL_CODED_LAYERS_H

#include "ranker/net/net.h"

/* A layer's record in the section. docs/FORMAT.md describes the section's layout. */
typedef struct sl_coded_layer_record {
    uint32_t type; /* sl_layer_type */
    float scale;   /* INT8: scale of the inputs; else 0 */
    int32_t zero;
    uint32_t reserved;
} sl_coded_layer_record;

typedef struct sl_coded_layers {
    uint8_t *block; /* the section's bytes */
    size_t size;
    sl_layer_codes layers[SL_MAX_LAYERS]; /* they point into the block */
} sl_coded_layers;

/* The arrays of a layer in the block. Callers that make a layer write them. */
typedef struct sl_coded_layer {
    float *weights; /* (in, out) of a layer of floats; else NULL */
    float *scales;  /* one for each output of an INT8 layer; else NULL */
    int8_t *codes;  /* (in, out) of an INT8 layer; else NULL */
    uint16_t *bf16; /* (in, out) of a bf16 layer; else NULL */
    float *biases;
} sl_coded_layer;

/* Makes a block for layers of these types, and writes the records.
 * Parameters: inputs: the ranges of INT8 layers' inputs. Errors: SL_ENOMEM. */
sl_status sl_coded_layers_create(const sl_net_shape *shape, const sl_layer_type *types, const sl_int8_range *inputs,
                                 const sl_allocator *allocator, sl_coded_layers *out);
/* Copies the layers. *out is empty if `from` is. Errors: SL_ENOMEM. */
sl_status sl_coded_layers_copy(const sl_coded_layers *from, const sl_net_shape *shape, const sl_allocator *allocator,
                               sl_coded_layers *out);
/* Copies the layers, but layers with as_floats set become floats, with the weights of `dense`, the net's block. *out is
 * empty if no coded layer is left. Errors: SL_ENOMEM. */
sl_status sl_coded_layers_with_floats(const sl_coded_layers *from, const sl_net_shape *shape, const int *as_floats,
                                      const float *dense, const sl_allocator *allocator, sl_coded_layers *out);
void sl_coded_layers_free(sl_coded_layers *coded, const sl_allocator *allocator);
sl_coded_layer sl_coded_layers_at(const sl_coded_layers *coded, const sl_net_shape *shape, size_t layer);

/* Returns what makes a layer unusable, or NULL: a number that is not finite, a bad scale, or more inputs than sums can
 * hold. */
const char *sl_coded_layers_fault(const sl_coded_layers *coded, const sl_net_shape *shape, size_t layer);
/* Refuses an unusable layer. Errors: SL_EVALUE. */
sl_status sl_coded_layers_check(const sl_coded_layers *coded, const sl_net_shape *shape, size_t layer);

/* Takes over a block from a file, and frees it on failure. Trusts nothing in it. Errors: SL_ECORRUPT. */
sl_status sl_coded_layers_read(const sl_net_shape *shape, void *block, size_t size, const sl_allocator *allocator,
                               sl_coded_layers *out);

/* Writes all weights and biases as floats into the net's block. */
void sl_coded_layers_decode(const sl_coded_layers *coded, const sl_net_shape *shape, float *dense);

#endif
