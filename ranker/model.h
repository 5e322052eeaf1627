/* A ranker: fitted features and weights. */
#ifndef SL_RANKER_MODEL_H
#define SL_RANKER_MODEL_H

#include "ranker/features.h"
#include "ranker/net.h"
#include "ranker/sparse.h"
#include "storage/store.h"

/* All weights of a model. They lie in one block: a copy of the model is one copy, and each part is a section of a
 * file. */
typedef struct sl_weights {
    float *wide;        /* (wide_size, outputs); weight w of output o at w * outputs + o */
    float *bias;        /* outputs; lies behind wide */
    float **embeddings; /* one for each table: (size, dim) */
    float *dense;       /* sl_net's block; NULL without a deep part */
    float *block;
    size_t block_size; /* floats */
} sl_weights;

/* The parts of the block, in floats. Each part and each embedding table begins a cache line. Gaps between them are
 * zero. */
typedef struct sl_weights_layout {
    size_t wide_size; /* the bias included */
    size_t embeddings_at, embeddings_size;
    size_t dense_at, dense_size;
    size_t total;
} sl_weights_layout;

struct sl_ranker {
    sl_allocator allocator;
    size_t references; /* atomic */
    sl_features *features;
    sl_net_shape shape; /* layers 0 without a deep part */
    sl_weights weights;
    sl_net *net;        /* the net of those weights; NULL without a deep part */
    sl_tensor *tensors; /* the weights by name */
    size_t tensor_count;
    char *names; /* of the tensors */
    size_t names_size;
};

/* weights.c: the memory of a model's weights, zeroed; the first weights, by the seed; copies. */

/* Errors: SL_ENOMEM (the weights do not fit the address space). */
sl_status sl_weights_layout_of(const sl_features *features, const sl_net_shape *shape, sl_weights_layout *out);
sl_status sl_weights_create(const sl_features *features, const sl_net_shape *shape, const sl_allocator *allocator,
                            sl_weights *out);
void sl_weights_free(sl_weights *weights, const sl_features *features, const sl_net_shape *shape,
                     const sl_allocator *allocator);
void sl_weights_initialise(sl_weights *weights, const sl_features *features, const sl_net_shape *shape, uint64_t seed);
void sl_weights_copy(sl_weights *to, const sl_weights *from, const sl_features *features, const sl_net_shape *shape);
/* Tells whether all of the floats are finite. */
int sl_all_finite(const float *values, size_t count);
void sl_shape_of(const sl_features *features, sl_net_shape *out);

/* ranker.c: makes a ranker with one reference. It takes features and weights over, on failure too. */
sl_status sl_ranker_make(sl_features *features, sl_weights *weights, const sl_allocator *allocator, sl_ranker **out);
sl_ranker *sl_ranker_retain(sl_ranker *ranker);

/* predict.c: computes the logits (rows, outputs) of a checked table. */
sl_status sl_predictor_logits(sl_predictor *predictor, const sl_table *table, float *logits);

#endif
