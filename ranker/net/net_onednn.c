/* Products as oneDNN's matmul primitives, with bias and activation as post-ops. All share one scratch pad. oneDNN makes
 * a primitive for OpenMP's current number of threads, and it must run under the same number. sl_products_run sets that
 * number. */
#include "base/probe.h"
#include "ranker/net/net_product.h"

#include <oneapi/dnnl/dnnl.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

enum { MAX_PRODUCTS = 1024, FIRST_ENTRIES = 64 };

struct sl_packed {
    sl_allocator allocator;
    dnnl_memory_desc_t layout;
    void *data;
    size_t bytes;
};

enum { SRC, WEIGHTS, BIAS, DST, PAD, OPERANDS };
static const int argument_of[OPERANDS] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST,
                                          DNNL_ARG_SCRATCHPAD};

/* A product and its operands' memories. Each run sets their handles. */
typedef struct product {
    sl_product_shape shape;
    dnnl_primitive_t primitive; /* NULL: the entry is free */
    dnnl_memory_t memory[OPERANDS];
    dnnl_exec_arg_t arguments[OPERANDS];
    int argument_count;
} product;

struct sl_products {
    sl_allocator allocator;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    product *entries; /* open addressing; the size is a power of two, at most half of it full */
    size_t entry_count, count;
    void *pad;
    size_t pad_size;
};

static sl_status fail_dnnl(dnnl_status_t result, const char *what) {
    if (result == dnnl_out_of_memory)
        return sl_fail(SL_ENOMEM, "oneDNN cannot %s: out of memory; free memory or use smaller layers", what);
    return sl_fail(SL_EUNSUPPORTED, "oneDNN cannot %s (its status %d); build without oneDNN to predict by plain C",
                   what, (int)result);
}

#define DNNL_TRY(expression, what, label)                                                                              \
    do {                                                                                                               \
        dnnl_status_t result_ = (expression);                                                                          \
        if (result_ != dnnl_success) {                                                                                 \
            status = fail_dnnl(result_, what);                                                                         \
            goto label;                                                                                                \
        }                                                                                                              \
    } while (0)

/* Sets the calling task's number of threads. Returns the number before. */
static int use_threads(size_t threads) {
#ifdef _OPENMP
    int before = omp_get_max_threads();
    if (before != (int)threads) omp_set_num_threads((int)threads);
    return before;
#else
    (void)threads;
    return 1;
#endif
}

/* ---- Making a primitive ---- */

static dnnl_data_type_t data_type(sl_dtype type) {
    return type == SL_BF16 ? dnnl_bf16 : type == SL_F16 ? dnnl_f16 : dnnl_f32;
}

static dnnl_status_t make_matrix_layout(sl_dtype type, size_t rows, size_t columns, size_t row_stride,
                                        size_t column_stride, dnnl_memory_desc_t *out) {
    dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)columns};
    dnnl_dims_t strides = {(dnnl_dim_t)row_stride, (dnnl_dim_t)column_stride};
    return dnnl_memory_desc_create_with_strides(out, 2, dims, data_type(type), strides);
}

static dnnl_status_t append_activation(dnnl_primitive_attr_t attributes, sl_activation activation) {
    static const dnnl_alg_kind_t kinds[] = {
        [SL_RELU] = dnnl_eltwise_relu, [SL_GELU] = dnnl_eltwise_gelu_erf, [SL_TANH] = dnnl_eltwise_tanh};
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t result = dnnl_post_ops_create(&ops);
    if (result == dnnl_success) result = dnnl_post_ops_append_eltwise(ops, kinds[activation], 0, 0);
    if (result == dnnl_success) result = dnnl_primitive_attr_set_post_ops(attributes, ops);
    dnnl_post_ops_destroy(ops);
    return result;
}

/* Describes a product. weights: their layout; NULL: oneDNN chooses. */
static sl_status describe_product(dnnl_engine_t engine, const sl_product_shape *shape, const_dnnl_memory_desc_t weights,
                                  dnnl_primitive_desc_t *out) {
    sl_status status = SL_OK;
    static const char what[] = "describe a matrix product";
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_memory_desc_t src = NULL, dst = NULL, bias = NULL, any = NULL;
    size_t stride = shape->stride;
    DNNL_TRY(dnnl_primitive_attr_create(&attributes), what, done);
    DNNL_TRY(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user), what, done);
    if (shape->activation != SL_LINEAR) DNNL_TRY(append_activation(attributes, shape->activation), what, done);
    DNNL_TRY(make_matrix_layout(shape->type, shape->rows, shape->in, shape->src_transposed ? 1 : stride,
                                shape->src_transposed ? stride : 1, &src),
             what, done);
    DNNL_TRY(make_matrix_layout(SL_F32, shape->rows, shape->out, shape->out, 1, &dst), what, done);
    if (shape->has_bias) DNNL_TRY(make_matrix_layout(SL_F32, 1, shape->out, shape->out, 1, &bias), what, done);
    if (!weights) {
        dnnl_dims_t dims = {(dnnl_dim_t)shape->in, (dnnl_dim_t)shape->out};
        DNNL_TRY(dnnl_memory_desc_create_with_tag(&any, 2, dims, data_type(shape->type), dnnl_format_tag_any), what,
                 done);
        weights = any;
    }
    DNNL_TRY(dnnl_matmul_primitive_desc_create(out, engine, src, weights, bias, dst, attributes), what, done);
done:
    dnnl_memory_desc_destroy(src);
    dnnl_memory_desc_destroy(dst);
    dnnl_memory_desc_destroy(bias);
    dnnl_memory_desc_destroy(any);
    dnnl_primitive_attr_destroy(attributes);
    return status;
}

static sl_status describe_with_weights(dnnl_engine_t engine, const sl_product_shape *shape,
                                       dnnl_primitive_desc_t *out) {
    if (shape->packed) return describe_product(engine, shape, shape->packed->layout, out);
    dnnl_memory_desc_t weights = NULL;
    int transposed = shape->weights_transposed;
    dnnl_status_t result = make_matrix_layout(shape->type, shape->in, shape->out, transposed ? 1 : shape->out,
                                              transposed ? shape->in : 1, &weights);
    if (result != dnnl_success) return fail_dnnl(result, "describe a matrix");
    sl_status status = describe_product(engine, shape, weights, out);
    dnnl_memory_desc_destroy(weights);
    return status;
}

static void product_free(product *made) {
    for (size_t i = 0; i < OPERANDS; i++)
        dnnl_memory_destroy(made->memory[i]);
    dnnl_primitive_destroy(made->primitive);
    *made = (product){.primitive = NULL};
}

static sl_status make_memories(sl_products *products, product *made, const_dnnl_primitive_desc_t desc) {
    sl_status status = SL_OK;
    const_dnnl_memory_desc_t layouts[OPERANDS] = {
        [SRC] = dnnl_primitive_desc_query_md(desc, dnnl_query_src_md, 0),
        [WEIGHTS] = dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0),
        [BIAS] = made->shape.has_bias ? dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 1) : NULL,
        [DST] = dnnl_primitive_desc_query_md(desc, dnnl_query_dst_md, 0),
        [PAD] = dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0),
    };
    size_t pad = dnnl_memory_desc_get_size(layouts[PAD]);
    if (pad > products->pad_size) {
        void *larger;
        SL_TRY(sl_mem_alloc(&products->allocator, pad, &larger));
        sl_mem_free(&products->allocator, products->pad, products->pad_size);
        products->pad = larger;
        products->pad_size = pad;
    }
    for (size_t i = 0; i < OPERANDS; i++) {
        if (!layouts[i]) continue;
        DNNL_TRY(dnnl_memory_create(&made->memory[i], layouts[i], products->engine, DNNL_MEMORY_NONE),
                 "describe an operand", done);
        made->arguments[made->argument_count++] = (dnnl_exec_arg_t){argument_of[i], made->memory[i]};
    }
done:
    return status;
}

static sl_status product_make(sl_products *products, const sl_product_shape *shape, product *out) {
    sl_status status = SL_OK;
    product made = {.shape = *shape};
    dnnl_primitive_desc_t desc = NULL;
    SL_TRY_GOTO(describe_with_weights(products->engine, shape, &desc), done);
    DNNL_TRY(dnnl_primitive_create(&made.primitive, desc), "make a matrix product", done);
    SL_TRY_GOTO(make_memories(products, &made, desc), done);
    *out = made;
done:
    dnnl_primitive_desc_destroy(desc);
    if (status != SL_OK) product_free(&made);
    return status;
}

/* ---- Packed weights ---- */

static sl_status reorder_weights(dnnl_engine_t engine, dnnl_stream_t stream, const float *weights, size_t in,
                                 size_t out, sl_packed *packed) {
    sl_status status = SL_OK;
    static const char what[] = "reorder weights";
    dnnl_memory_desc_t plain = NULL;
    dnnl_memory_t from = NULL, to = NULL;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t primitive = NULL;
    union {
        const float *in;
        void *handle; /* oneDNN only reads sources, but their type is not const */
    } source = {weights};
    DNNL_TRY(make_matrix_layout(SL_F32, in, out, out, 1, &plain), what, done);
    DNNL_TRY(dnnl_reorder_primitive_desc_create(&desc, plain, engine, packed->layout, engine, NULL), what, done);
    DNNL_TRY(dnnl_primitive_create(&primitive, desc), what, done);
    DNNL_TRY(dnnl_memory_create(&from, plain, engine, source.handle), what, done);
    DNNL_TRY(dnnl_memory_create(&to, packed->layout, engine, packed->data), what, done);
    dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    DNNL_TRY(dnnl_primitive_execute(primitive, stream, 2, arguments), what, done);
    DNNL_TRY(dnnl_stream_wait(stream), what, done);
done:
    dnnl_memory_destroy(from);
    dnnl_memory_destroy(to);
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(desc);
    dnnl_memory_desc_destroy(plain);
    return status;
}

static sl_status pack_weights(sl_products *products, const float *weights, const sl_product_shape *shape,
                              sl_packed *packed) {
    sl_status status = SL_OK;
    dnnl_primitive_desc_t desc = NULL;
    SL_TRY_GOTO(describe_product(products->engine, shape, NULL, &desc), done);
    DNNL_TRY(dnnl_memory_desc_clone(&packed->layout, dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0)),
             "copy a layout", done);
    size_t bytes = dnnl_memory_desc_get_size(packed->layout);
    SL_TRY_GOTO(sl_mem_alloc(&packed->allocator, bytes, &packed->data), done);
    packed->bytes = bytes;
    SL_TRY_GOTO(reorder_weights(products->engine, products->stream, weights, shape->in, shape->out, packed), done);
done:
    dnnl_primitive_desc_destroy(desc);
    return status;
}

sl_status sl_packed_create(const float *weights, size_t rows, size_t in, size_t out, const sl_allocator *allocator,
                           sl_packed **packed) {
    *packed = NULL;
    sl_status status;
    sl_packed *made = NULL;
    sl_products *products = NULL;
    void *block;
    sl_product_shape shape = {
        .rows = rows, .in = in, .out = out, .stride = in, .has_bias = 1, .activation = SL_LINEAR, .threads = 1};
    int before = use_threads(1);
    SL_TRY_GOTO(sl_mem_alloc(allocator, sizeof *made, &block), done);
    made = block;
    made->allocator = *allocator;
    SL_TRY_GOTO(sl_products_create(allocator, &products), done);
    SL_TRY_GOTO(pack_weights(products, weights, &shape, made), done);
    *packed = made;
    made = NULL;
done:
    use_threads((size_t)before);
    sl_products_free(products);
    sl_packed_free(made);
    return status;
}

void sl_packed_free(sl_packed *packed) {
    if (!packed) return;
    sl_allocator allocator = packed->allocator;
    sl_mem_free(&allocator, packed->data, packed->bytes);
    dnnl_memory_desc_destroy(packed->layout);
    SL_FREE(&allocator, packed);
}

/* ---- Products by their shapes ---- */

sl_status sl_products_create(const sl_allocator *allocator, sl_products **out) {
    *out = NULL;
    sl_status status = SL_OK;
    void *block;
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_products), &block));
    sl_products *products = block;
    products->allocator = *allocator;
    SL_TRY_GOTO(sl_mem_alloc(allocator, FIRST_ENTRIES * sizeof(product), &block), fail);
    products->entries = block;
    products->entry_count = FIRST_ENTRIES;
    DNNL_TRY(dnnl_engine_create(&products->engine, dnnl_cpu, 0), "make an engine", fail);
    DNNL_TRY(dnnl_stream_create(&products->stream, products->engine, dnnl_stream_default_flags), "make a stream", fail);
    *out = products;
    return SL_OK;
fail:
    sl_products_free(products);
    return status;
}

static void drop_products(sl_products *products) {
    for (size_t i = 0; i < products->entry_count; i++)
        if (products->entries[i].primitive) product_free(&products->entries[i]);
    products->count = 0;
}

void sl_products_free(sl_products *products) {
    if (!products) return;
    sl_allocator allocator = products->allocator;
    if (products->entries) drop_products(products);
    SL_FREE_ARRAY(&allocator, products->entries, products->entry_count);
    sl_mem_free(&allocator, products->pad, products->pad_size);
    dnnl_stream_destroy(products->stream);
    dnnl_engine_destroy(products->engine);
    SL_FREE(&allocator, products);
}

static int same_shape(const sl_product_shape *a, const sl_product_shape *b) {
    return a->rows == b->rows && a->in == b->in && a->out == b->out && a->stride == b->stride &&
           a->src_transposed == b->src_transposed && a->weights_transposed == b->weights_transposed &&
           a->has_bias == b->has_bias && a->activation == b->activation && a->packed == b->packed &&
           a->threads == b->threads && a->type == b->type;
}

/* Returns the entry of the shape, or the free entry that it gets. */
static product *find_entry(product *entries, size_t entry_count, const sl_product_shape *shape) {
    uint64_t hash = shape->rows * 0x9e3779b97f4a7c15u + shape->in * 0xc2b2ae3d27d4eb4fu +
                    shape->out * 0x165667b19e3779f9u + shape->stride;
    hash = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93u;
    SL_PROBE(at, hash >> 40, entry_count) {
        if (!entries[at].primitive || same_shape(&entries[at].shape, shape)) return &entries[at];
    }
}

static sl_status reserve_entry(sl_products *products) {
    if (products->count >= MAX_PRODUCTS) drop_products(products);
    if (2 * (products->count + 1) <= products->entry_count) return SL_OK;
    size_t larger = 2 * products->entry_count;
    void *block;
    SL_TRY(sl_mem_alloc(&products->allocator, larger * sizeof(product), &block));
    for (size_t i = 0; i < products->entry_count; i++)
        if (products->entries[i].primitive)
            *find_entry(block, larger, &products->entries[i].shape) = products->entries[i];
    SL_FREE_ARRAY(&products->allocator, products->entries, products->entry_count);
    products->entries = block;
    products->entry_count = larger;
    return SL_OK;
}

static sl_status run_primitive(sl_products *products, const product *made, void *const operands[OPERANDS]) {
    for (size_t i = 0; i < OPERANDS; i++) {
        if (!made->memory[i]) continue;
        dnnl_status_t result = dnnl_memory_set_data_handle(made->memory[i], operands[i]);
        if (result != dnnl_success) return fail_dnnl(result, "take an operand");
    }
    dnnl_status_t result =
        dnnl_primitive_execute(made->primitive, products->stream, made->argument_count, made->arguments);
    if (result == dnnl_success) result = dnnl_stream_wait(products->stream);
    return result == dnnl_success ? SL_OK : fail_dnnl(result, "multiply matrices");
}

/* oneDNN reports the instructions that CPUID and ONEDNN_MAX_CPU_ISA allow. Without BF16 instructions, it multiplies
 * BF16 about four times slower than F32. */
int sl_net_multiplies(sl_dtype type) {
    unsigned found = (unsigned)dnnl_get_effective_cpu_isa();
    unsigned needed = type == SL_BF16  ? (unsigned)dnnl_cpu_isa_avx512_core_bf16
                      : type == SL_F16 ? (unsigned)dnnl_cpu_isa_avx512_core_fp16
                                       : 0;
    return (found & needed) == needed;
}

sl_status sl_products_run(sl_products *products, const sl_product_shape *shape, const void *src, const void *weights,
                          const float *bias, float *dst) {
    sl_status status = SL_OK;
    int before = use_threads(shape->threads);
    product *made = find_entry(products->entries, products->entry_count, shape);
    if (!made->primitive) {
        SL_TRY_GOTO(reserve_entry(products), done);
        made = find_entry(products->entries, products->entry_count, shape);
        SL_TRY_GOTO(product_make(products, shape, made), done);
        products->count++;
    }
    const void *sources[] = {src, shape->packed ? shape->packed->data : weights, bias};
    void *operands[OPERANDS] = {[DST] = dst, [PAD] = products->pad};
    memcpy(operands, sources, sizeof sources); /* oneDNN's handles are not const, but it only reads sources */
    status = run_primitive(products, made, operands);
done:
    if (before != (int)shape->threads) use_threads((size_t)before);
    return status;
}
