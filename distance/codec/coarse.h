/*
 * Coarse rows: short rows for the walk alone. They hold 4-bit codes of a learned projection of the vector.
 *
 * Long vectors, and vectors with few distinct values an element, have coarse rows of one or two cache lines. The rows
 * of the codec then re-rank the walk's candidates. The projection keeps the directions in which a sample of the vectors
 * varies most. A random rotation mixes these directions, so that every element of the result carries the same share.
 * The projection is stored as I8 rows, and scoring these rows projects a vector. Vectors and queries go through the
 * same arithmetic, on every tier.
 *
 * The mean of the sample is m, and the projection is P. Under cosine, q and x are normalised. A row holds the levels of
 * P(x - m), and a score is
 *
 *   IP       P q . P(x - m)                                    about x.q - m.q
 *   COSINE   P(q - m) . P(x - m) + m.(x - m)                   about x.q - m.q
 *   L2       P(q - m) . P(x - m) - |x - m|^2 / 2               about (|q - m|^2 - |x - q|^2) / 2
 *
 * The last term depends on x alone: it is the row's bias.
 */
#ifndef SL_DISTANCE_CODEC_COARSE_H
#define SL_DISTANCE_CODEC_COARSE_H

#include "distance/codec/codec.h"

/* Longer vectors have no coarse rows: their projection would be larger than many indexes. */
#define SL_COARSE_MAX_DIM 8192u

typedef struct sl_coarse {
    sl_codec codec;    /* the coarse rows, base included: I4 codes of the projected vector; pitch 0: there are none */
    sl_codec matrix;   /* the projection, base included: a row for each element of the result */
    sl_metric metric;  /* of the vectors */
    const float *mean; /* follows the matrix's rows; the number of vectors learned from follows the mean */
} sl_coarse;

/* Returns whether an index with codes I4 keeps coarse rows, beside rows of other codes. It does if 4 bits an element
 * don't fit a cache line, or if the elements are integers. */
int sl_coarse_wanted(size_t dim, sl_metric metric, sl_dtype dtype);

/* Fills the geometry for vectors of a valid dim. */
sl_status sl_coarse_init(sl_coarse *coarse, size_t dim, sl_metric metric);

/* Returns the bytes of the projection: rows, mean, and the number of vectors learned from. */
size_t sl_coarse_projection_size(const sl_coarse *coarse);
/* Sets the projection: memory of that size, with SL_ROW_STEP readable bytes behind it. */
void sl_coarse_set_projection(sl_coarse *coarse, const uint8_t *projection);
/* Returns how many vectors the projection was learned from. */
uint32_t sl_coarse_learned(const sl_coarse *coarse);
/* Returns whether factors and mean are finite. */
int sl_coarse_is_finite(const sl_coarse *coarse);

/* The vectors that a projection is learned from. */
typedef struct sl_coarse_vectors {
    void (*get)(const void *ctx, size_t i, float *out); /* fills out[0 .. dim) with vector i; called by many threads */
    const void *ctx;
    size_t n; /* at least 1 */
} sl_coarse_vectors;

/*
 * Learns a projection from vectors, or from a sample of them if they are many. Vectors that are not finite count as
 * zero. The projection is the same at any number of threads. A failure writes nothing.
 *
 * Parameters: `projection`, sl_coarse_projection_size(coarse) bytes.
 * Errors: SL_ENOMEM.
 */
sl_status sl_coarse_learn(const sl_coarse *coarse, const sl_allocator *allocator, const sl_coarse_vectors *vectors,
                          uint64_t seed, size_t threads, uint8_t *projection);
/* Returns the bytes that sl_coarse_learn allocates for n vectors. */
size_t sl_coarse_learn_bytes(const sl_coarse *coarse, size_t n);
/* Returns the most vectors that sl_coarse_learn samples. */
size_t sl_coarse_sample(const sl_coarse *coarse);

/* Returns the bytes of a query, and of the buffer of sl_coarse_encode. Both are 64-byte aligned. */
size_t sl_coarse_query_size(const sl_coarse *coarse);

/* Encodes x, dim floats, into a row; x is overwritten. */
void sl_coarse_encode(const sl_coarse *coarse, const sl_kernels *kernels, float *x, void *buffer, uint8_t *row);

/*
 * Encodes x, dim floats, as a query; x is overwritten.
 *
 * Parameters:
 *   norm2   gets |x|^2
 *   origin  gets the score of distance 0, under IP of a product of 0
 */
void sl_coarse_encode_query(const sl_coarse *coarse, const sl_kernels *kernels, float *x, void *buffer,
                            sl_query_code *out, double *norm2, float *origin);

#endif
