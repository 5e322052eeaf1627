/* A ranker: fitted features and weights. */
#ifndef SL_RANKER_MODEL_MODEL_H
#define SL_RANKER_MODEL_MODEL_H

#include "ranker/features/features.h"
#include "ranker/model/coded_layers.h"
#include "ranker/model/sparse_forward.h"
#include "ranker/net/net.h"
#include "storage/store.h"

/* All weights of a model, in one block: one copy copies the model, and each part is a section of a file. Coded tables
 * have a block of their own. */
typedef struct sl_weights {
    float *wide;        /* (wide_size, outputs); weight w of output o at w * outputs + o */
    float *bias;        /* one for each output; follows wide */
    float **embeddings; /* one for each table: (size, dim); NULL for a coded table */
    sl_coded_tables coded;
    float *dense; /* sl_net's block; NULL without a deep part */
    float *block;
    size_t block_size; /* size in floats */
} sl_weights;

/* The parts of the block, in floats. Each part and each embedding table begins at a cache line. Zeros fill the gaps. */
typedef struct sl_weights_layout {
    size_t wide_size; /* with the bias */
    size_t embeddings_at, embeddings_size;
    size_t dense_at, dense_size;
    size_t total;
    /* Bytes of the coded tables' records and of their rows; 0 if no table is coded. */
    size_t codes_size, rows_size;
} sl_weights_layout;

struct sl_ranker {
    sl_allocator allocator;
    size_t references; /* atomic */
    sl_features *features;
    sl_net_shape shape; /* no layers without a deep part */
    sl_weights weights;
    sl_coded_layers coded; /* the layers if some are coded; an empty block if all are floats */
    sl_net *net;           /* the net of these weights; NULL without a deep part */
    sl_tensor *tensors;    /* the weights by name; data is NULL for a coded table */
    float **decoded; /* one for each table, atomic: a coded table as floats, made when first asked for; else NULL */
    size_t tensor_count;
    char *names; /* the tensors' names */
    size_t names_size;
};

/* weights.c: allocates a model's weights, initialises them by the seed, copies them. New memory is zeros. */

/* Lay out and allocate the weights. Errors: SL_ENOMEM (also if the weights do not fit the address space). */
sl_status sl_weights_layout_of(const sl_features *features, const sl_net_shape *shape, sl_weights_layout *out);
sl_status sl_weights_create(const sl_features *features, const sl_net_shape *shape, const sl_allocator *allocator,
                            sl_weights *out);
/* The same with coded tables. `codes` has a record for each table, and is copied; NULL: all tables are floats. */
sl_status sl_weights_layout_coded(const sl_features *features, const sl_net_shape *shape, const sl_table_codes *codes,
                                  sl_weights_layout *out);
sl_status sl_weights_create_coded(const sl_features *features, const sl_net_shape *shape, const sl_table_codes *codes,
                                  const sl_allocator *allocator, sl_weights *out);
void sl_weights_free(sl_weights *weights, const sl_features *features, const sl_net_shape *shape,
                     const sl_allocator *allocator);
void sl_weights_initialise(sl_weights *weights, const sl_features *features, const sl_net_shape *shape, uint64_t seed);
/* Copies all weights, except a table that is coded in one of the two alone. If both have it coded, their records must
 * be equal. */
void sl_weights_copy(sl_weights *to, const sl_weights *from, const sl_features *features, const sl_net_shape *shape);
void sl_shape_of(const sl_features *features, sl_net_shape *out);

/* ranker.c: makes a ranker with one reference. It takes over features, weights and coded, also on failure.
 * Parameters: coded is NULL or empty if all layers are floats. Else the weights' dense part must be the decoded
 * layers. */
sl_status sl_ranker_make(sl_features *features, sl_weights *weights, sl_coded_layers *coded,
                         const sl_allocator *allocator, sl_ranker **out);
sl_ranker *sl_ranker_retain(sl_ranker *ranker);
/* Copies a ranker's features, by writing them as bytes for a model file and reading them. */
sl_status sl_ranker_copy_features(const sl_ranker *base, sl_features **out);
/* Returns the tensor's name of embedding table `table`. */
const char *sl_ranker_table_name(const sl_ranker *ranker, size_t table);

/* predict.c: computes the logits (rows, outputs) of a checked table. */
sl_status sl_predictor_logits(sl_predictor *predictor, const sl_table *table, float *logits);

#endif
