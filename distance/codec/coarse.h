/*
 * Short rows for a walk alone: 4-bit codes of a learned projection of the vector.
 *
 * Long vectors, and those of few distinct values an element, are walked over in one or two cache lines each; what a
 * walk finds is then ranked by rows of the codec. The projection is onto the directions in which a sample of the
 * vectors varies most, turned at random among themselves, so that every element of the result carries alike much. It is
 * kept as I8 rows, and projecting is scoring them: a vector and a query go through the same arithmetic, the same on
 * every tier.
 *
 * With the mean m of the sample, the projection P, and q and x made unit under cosine, a row holds the levels of P(x -
 * m), and a score is
 *
 *   IP       P q . P(x - m)                                    about x.q - m.q
 *   COSINE   P(q - m) . P(x - m) + m.(x - m)                   about x.q - m.q
 *   L2       P(q - m) . P(x - m) - |x - m|^2 / 2               about (|q - m|^2 - |x - q|^2) / 2
 *
 * where the last term of x alone is its bias.
 */
#ifndef SL_DISTANCE_CODEC_COARSE_H
#define SL_DISTANCE_CODEC_COARSE_H

#include "distance/codec/codec.h"

/* Longer vectors have no such rows: their projection would be larger than many an index. */
#define SL_COARSE_MAX_DIM 8192u

typedef struct sl_coarse {
    sl_codec codec;    /* of the rows, base included: I4 of the projected vector; pitch 0: there are none */
    sl_codec matrix;   /* of the projection: a row an element of the result; base included */
    sl_metric metric;  /* of the vectors */
    const float *mean; /* behind the matrix's rows, and behind it the rows learned from */
} sl_coarse;

/* Whether codes I4 of such vectors are kept as rows of another kind and these beside them: where 4 bits an element do
 * not fit a cache line, or the elements are integers. */
int sl_coarse_wanted(size_t dim, sl_metric metric, sl_dtype dtype);

/* The geometry, for vectors of a valid dim. */
sl_status sl_coarse_init(sl_coarse *coarse, size_t dim, sl_metric metric);

/* Bytes of the projection: rows, mean, and how many vectors it was learned from. */
size_t sl_coarse_projection_size(const sl_coarse *coarse);
/* Takes it from memory of as many bytes, with SL_ROW_STEP readable behind them. */
void sl_coarse_adopt(sl_coarse *coarse, const uint8_t *projection);
uint32_t sl_coarse_learned(const sl_coarse *coarse);
/* Whether factors and mean are finite. */
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
/* Where this many were there, more would not have been looked at. */
size_t sl_coarse_sample(const sl_coarse *coarse);

/* Bytes of a query, 64-byte aligned; also of what sl_coarse_encode needs. */
size_t sl_coarse_query_size(const sl_coarse *coarse);

/* x, dim floats, into a row; x is overwritten. */
void sl_coarse_encode(const sl_coarse *coarse, const sl_kernels *kernels, float *x, void *buffer, uint8_t *row);

/* x, dim floats, as a query; x is overwritten. *norm2 gets |x|^2; *origin the score that stands for distance 0, under
 * IP for a product of 0. */
void sl_coarse_ask(const sl_coarse *coarse, const sl_kernels *kernels, float *x, void *buffer, sl_query_code *out,
                   double *norm2, float *origin);

#endif
