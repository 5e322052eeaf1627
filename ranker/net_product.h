/* Matrix products of fixed shapes, which net_onednn.c makes as oneDNN's primitives and net_plain.c does by loops. */
#ifndef SL_RANKER_NET_PRODUCT_H
#define SL_RANKER_NET_PRODUCT_H

#include "base/memory.h"
#include "ranker/net.h"

/* A matrix of weights (in, out) in the layout that products with few rows want: made once, used by any thread. */
typedef struct sl_packed sl_packed;
/* *out is NULL where row-major is what products want. `rows` are those of the usual product. */
sl_status sl_packed_create(const float *weights, size_t rows, size_t in, size_t out, const sl_allocator *allocator,
                           sl_packed **packed);
void sl_packed_free(sl_packed *packed);

/* dst (rows, out) = act(src (rows, in) times weights (in, out) + bias), all row-major but for: */
typedef struct sl_product_shape {
    size_t rows, in, out;
    size_t stride;          /* floats from one line of src to the next */
    int src_transposed;     /* src lies there as (in, rows) */
    int weights_transposed; /* weights lie there as (out, in) */
    int has_bias;
    sl_activation activation;
    const sl_packed *packed; /* the weights, packed; NULL: row-major */
    size_t threads;          /* that share the work */
} sl_product_shape;

/* One thread's products, made when first met and kept by their shape, and the scratch pad they share. Those made are
 * dropped and made again where there come to be more than a thousand. */
typedef struct sl_products sl_products;
sl_status sl_products_create(const sl_allocator *allocator, sl_products **out);
void sl_products_free(sl_products *products);
/* weights may be NULL where packed ones are given. bias is read where the shape says so. */
sl_status sl_products_run(sl_products *products, const sl_product_shape *shape, const float *src, const float *weights,
                          const float *bias, float *dst);

#endif
