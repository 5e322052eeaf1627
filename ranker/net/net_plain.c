/* Products without oneDNN: plain loops on the calling thread. Prediction needs no more. Training needs products of
 * transposed matrices, and net_train.c refuses it earlier. */
#include "ranker/net/loops.h"
#include "ranker/net/net_product.h"

struct sl_products {
    sl_allocator allocator;
    const sl_loops *loops;
};

sl_status sl_packed_create(const float *weights, size_t rows, size_t in, size_t out, const sl_allocator *allocator,
                           sl_packed **packed) {
    (void)weights;
    (void)rows;
    (void)in;
    (void)out;
    (void)allocator;
    *packed = NULL;
    return SL_OK;
}

void sl_packed_free(sl_packed *packed) {
    (void)packed;
}

sl_status sl_products_create(const sl_allocator *allocator, sl_products **out) {
    *out = NULL;
    void *block;
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_products), &block));
    sl_products *products = block;
    products->allocator = *allocator;
    products->loops = sl_loops_get();
    *out = products;
    return SL_OK;
}

void sl_products_free(sl_products *products) {
    if (!products) return;
    sl_allocator allocator = products->allocator;
    SL_FREE(&allocator, products);
}

int sl_net_multiplies(sl_dtype type) {
    return type == SL_F32;
}

sl_status sl_products_run(sl_products *products, const sl_product_shape *shape, const void *src, const void *weights,
                          const float *bias, float *dst) {
    const sl_loops *loops = products->loops;
    if (shape->type != SL_F32)
        return sl_fail(SL_EUNSUPPORTED, "products of %s need a build with oneDNN 3.x", sl_dtype_name(shape->type));
    if (shape->src_transposed || shape->weights_transposed)
        return sl_fail(SL_EUNSUPPORTED, "products of transposed matrices need a build with oneDNN 3.x");
    sl_plain_product product = {.src = src,
                                .weights = weights,
                                .bias = shape->has_bias ? bias : NULL,
                                .stride = shape->stride,
                                .rows = shape->rows,
                                .in = shape->in,
                                .out = shape->out,
                                .dst = dst};
    loops->product(&product);
    if (shape->activation != SL_LINEAR) loops->activate(dst, shape->rows * shape->out, shape->activation, dst);
    return SL_OK;
}
