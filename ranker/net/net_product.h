/* Matrix products of fixed shapes. net_onednn.c makes oneDNN primitives of them; net_plain.c runs plain loops. */
#ifndef SL_RANKER_NET_NET_PRODUCT_H
#define SL_RANKER_NET_NET_PRODUCT_H

#include "base/memory.h"
#include "ranker/net/net.h"

/* A matrix of weights (in, out) in the layout that products of few rows prefer. It does not change, and all threads may
 * share it. */
typedef struct sl_packed sl_packed;
/* Packs a matrix. `rows` is the usual row count of its products. *out is NULL if they prefer row-major. */
sl_status sl_packed_create(const float *weights, size_t rows, size_t in, size_t out, const sl_allocator *allocator,
                           sl_packed **packed);
void sl_packed_free(sl_packed *packed);

/* dst (rows, out) = act(src (rows, in) times weights (in, out) + bias). Matrices are row-major unless a field says
 * otherwise. */
typedef struct sl_product_shape {
    size_t rows, in, out;
    size_t stride;          /* elements from one line of src to the next */
    sl_dtype type;          /* of src and weights: F32 (0), BF16 or F16. bias, dst and the sums are F32 */
    int src_transposed;     /* src is stored as (in, rows) */
    int weights_transposed; /* weights are stored as (out, in) */
    int has_bias;
    sl_activation activation;
    const sl_packed *packed; /* the packed weights; NULL: they are row-major */
    size_t threads;          /* threads that share the work */
} sl_product_shape;

/* One thread's products and their scratch pad. A product is made when first needed, and kept by its shape. At 1,024
 * products all are dropped. */
typedef struct sl_products sl_products;
sl_status sl_products_create(const sl_allocator *allocator, sl_products **out);
void sl_products_free(sl_products *products);
/* Runs a product. weights may be NULL if the shape has packed ones, which are F32. bias is read if the shape has one.
 * Errors: SL_EUNSUPPORTED (16-bit operands for which sl_net_multiplies is false). */
sl_status sl_products_run(sl_products *products, const sl_product_shape *shape, const void *src, const void *weights,
                          const float *bias, float *dst);

#endif
