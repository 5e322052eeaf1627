/* A net that trains: the activations of a mini-batch, and the gradients by them. Weights are the caller's. They change
 * between two steps and stay row-major. */
#include "base/random.h"
#include "base/thread.h"
#include "ranker/loops.h"
#include "ranker/net_product.h"

#include <string.h>

/* Multiplications of a call below which a second thread costs more than it saves. */
#define WORK_OF_A_THREAD ((size_t)1 << 22)
#define DROPOUT_STEPS    65536.0

struct sl_net_trainer {
    sl_allocator allocator;
    sl_net_shape shape;
    const sl_loops *loops;
    sl_products *products;
    size_t max_rows, threads;
    double dropout;
    /* The last forward, for backward: */
    size_t rows;
    uint64_t seed, step;
    float *values[SL_MAX_LAYERS];    /* inputs of each layer */
    float *sums[SL_MAX_LAYERS];      /* GELU: the sums before the activation; else the same as values */
    float *gradients[SL_MAX_LAYERS]; /* gradients of the loss by each layer's inputs */
    float *bias_parts;               /* column sums of each thread's rows, part_stride floats apart */
    size_t part_stride;
};

static size_t row_bytes(const sl_net_trainer *trainer, size_t layer) {
    return trainer->max_rows * trainer->shape.width[layer] * sizeof(float);
}

static size_t parts_bytes(const sl_net_trainer *trainer) {
    return trainer->threads * trainer->part_stride * sizeof(float);
}

static sl_status make_buffers(sl_net_trainer *trainer) {
    const sl_net_shape *shape = &trainer->shape;
    void *block;
    size_t widest = 0;
    for (size_t l = 0; l <= shape->layers; l++) {
        size_t bytes;
        if (!sl_mul(trainer->max_rows, shape->width[l] * sizeof(float), &bytes))
            return sl_fail(SL_ENOMEM, "batches of %zu rows do not fit; use smaller ones", trainer->max_rows);
        widest = shape->width[l] > widest ? shape->width[l] : widest;
    }
    for (size_t l = 0; l < shape->layers; l++) {
        SL_TRY(sl_mem_alloc(&trainer->allocator, row_bytes(trainer, l), &block));
        trainer->values[l] = block;
        SL_TRY(sl_mem_alloc(&trainer->allocator, row_bytes(trainer, l), &block));
        trainer->gradients[l] = block;
        trainer->sums[l] = trainer->values[l];
        if (l == 0 || shape->activation != SL_GELU) continue;
        SL_TRY(sl_mem_alloc(&trainer->allocator, row_bytes(trainer, l), &block));
        trainer->sums[l] = block;
    }
    trainer->part_stride = sl_round_up(widest, SL_CACHE_LINE / sizeof(float));
    SL_TRY(sl_mem_alloc(&trainer->allocator, parts_bytes(trainer), &block));
    trainer->bias_parts = block;
    return sl_products_create(&trainer->allocator, &trainer->products);
}

sl_status sl_net_trainer_create(const sl_net_shape *shape, size_t max_rows, size_t threads, double dropout,
                                const sl_allocator *allocator, sl_net_trainer **out) {
    *out = NULL;
    void *block;
    if (!sl_net_has_onednn())
        return sl_fail(SL_EUNSUPPORTED,
                       "training needs oneDNN, which this build lacks: install oneDNN 3.x (libdnnl-dev, "
                       "or onednn-devel-cpu-gomp from PyPI) and build again");
    SL_TRY(sl_mem_alloc(allocator, sizeof(sl_net_trainer), &block));
    sl_net_trainer *trainer = block;
    trainer->allocator = *allocator;
    trainer->shape = *shape;
    trainer->loops = sl_loops_get();
    trainer->max_rows = max_rows;
    trainer->threads = sl_thread_count(threads);
    trainer->dropout = dropout;
    sl_status status = make_buffers(trainer);
    if (status == SL_OK)
        *out = trainer;
    else
        sl_net_trainer_free(trainer);
    return status;
}

void sl_net_trainer_free(sl_net_trainer *trainer) {
    if (!trainer) return;
    sl_allocator allocator = trainer->allocator;
    sl_products_free(trainer->products);
    for (size_t l = 0; l < trainer->shape.layers; l++) {
        if (trainer->sums[l] != trainer->values[l]) sl_mem_free(&allocator, trainer->sums[l], row_bytes(trainer, l));
        sl_mem_free(&allocator, trainer->values[l], row_bytes(trainer, l));
        sl_mem_free(&allocator, trainer->gradients[l], row_bytes(trainer, l));
    }
    sl_mem_free(&allocator, trainer->bias_parts, parts_bytes(trainer));
    sl_mem_free(&allocator, trainer, sizeof *trainer);
}

float *sl_net_trainer_input(sl_net_trainer *trainer) {
    return trainer->values[0];
}

const float *sl_net_trainer_input_gradient(const sl_net_trainer *trainer) {
    return trainer->gradients[0];
}

/* ---------------------------------------------------------------------------------------------------------------
 * What is not a product
 * ------------------------------------------------------------------------------------------------------------- */

/* Some rows of the mini-batch. */
typedef struct span {
    size_t first, rows;
} span;

/* Threads for a layer, by the work of its product. One decision holds for all that is done with its matrices. */
static size_t threads_for(const sl_net_trainer *trainer, size_t layer) {
    size_t work = trainer->rows * trainer->shape.width[layer] * trainer->shape.width[layer + 1];
    size_t worth = work / WORK_OF_A_THREAD + 1;
    return worth < trainer->threads ? worth : trainer->threads;
}

/* The dropout of layer l's inputs from row `first` on. */
static sl_dropout dropout_of(const sl_net_trainer *trainer, size_t layer, size_t first) {
    double kept = 1 - trainer->dropout;
    uint64_t seed = sl_random_at(sl_random_at(trainer->seed, trainer->step), layer);
    return (sl_dropout){seed, first, (uint32_t)(trainer->dropout * DROPOUT_STEPS + 0.5), (float)(1 / kept)};
}

static int drops(const sl_net_trainer *trainer) {
    return trainer->dropout > 0 && trainer->seed != 0;
}

/* Part number `part` of `parts` equal parts of the mini-batch's rows. */
static span rows_of(const sl_net_trainer *trainer, size_t part, size_t parts) {
    size_t begin = trainer->rows * part / parts, end = trainer->rows * (part + 1) / parts;
    return (span){begin, end - begin};
}

/* Makes layer l's inputs from the product's results: activation, then dropout. Serving fuses the activation with the
 * product. Training does not: oneDNN's ReLU gives 0 for NaN, and weights that have run off would go unnoticed. */
static void finish_rows(sl_net_trainer *trainer, size_t layer, span part) {
    size_t width = trainer->shape.width[layer], at = part.first * width;
    trainer->loops->activate(trainer->sums[layer] + at, part.rows * width, trainer->shape.activation,
                             trainer->values[layer] + at);
    if (!drops(trainer)) return;
    sl_dropout drop = dropout_of(trainer, layer, part.first);
    trainer->loops->dropout(trainer->values[layer] + at, part.rows, width, &drop);
}

static void finish_layer(sl_net_trainer *trainer, size_t layer, size_t threads) {
    if (threads == 1) {
        finish_rows(trainer, layer, rows_of(trainer, 0, 1));
        return;
    }
#pragma omp parallel for num_threads((int)threads) schedule(static, 1)
    for (size_t t = 0; t < threads; t++)
        finish_rows(trainer, layer, rows_of(trainer, t, threads));
}

/* Turns the gradient by layer l's inputs into the gradient by the sums before the activation. Adds the column sums to
 * `sums`. */
static void backward_rows(sl_net_trainer *trainer, size_t layer, span part, float *sums) {
    size_t width = trainer->shape.width[layer], at = part.first * width;
    float *gradient = trainer->gradients[layer] + at;
    const float *out = trainer->sums[layer];
    float scale = 1;
    if (drops(trainer)) {
        sl_dropout drop = dropout_of(trainer, layer, part.first);
        trainer->loops->dropout(gradient, part.rows, width, &drop);
        if (out == trainer->values[layer]) scale = drop.scale;
    }
    trainer->loops->backward(out + at, gradient, part.rows, width, trainer->shape.activation, scale, sums);
}

static void backward_layer(sl_net_trainer *trainer, size_t layer, size_t threads, float *bias_gradient) {
    if (threads == 1) {
        backward_rows(trainer, layer, rows_of(trainer, 0, 1), bias_gradient);
        return;
    }
    size_t width = trainer->shape.width[layer];
#pragma omp parallel for num_threads((int)threads) schedule(static, 1)
    for (size_t t = 0; t < threads; t++) {
        float *part = trainer->bias_parts + t * trainer->part_stride;
        memset(part, 0, width * sizeof *part);
        backward_rows(trainer, layer, rows_of(trainer, t, threads), part);
    }
    for (size_t t = 0; t < threads; t++)
        trainer->loops->add(bias_gradient, trainer->bias_parts + t * trainer->part_stride, width);
}

/* ---------------------------------------------------------------------------------------------------------------
 * A step
 * ------------------------------------------------------------------------------------------------------------- */

sl_status sl_net_trainer_forward(sl_net_trainer *trainer, const float *weights, size_t rows, uint64_t seed,
                                 uint64_t step, float *logits) {
    const sl_net_shape *shape = &trainer->shape;
    if (rows > trainer->max_rows)
        return sl_fail(SL_EINVAL, "%zu rows for a trainer of at most %zu", rows, trainer->max_rows);
    trainer->rows = rows;
    trainer->seed = seed;
    trainer->step = step;
    for (size_t l = 0; l < shape->layers && rows; l++) {
        int last = l + 1 == shape->layers;
        sl_product_shape product = {.rows = rows,
                                    .in = shape->width[l],
                                    .out = shape->width[l + 1],
                                    .stride = shape->width[l],
                                    .has_bias = 1,
                                    .activation = SL_LINEAR,
                                    .threads = threads_for(trainer, l)};
        SL_TRY(sl_products_run(trainer->products, &product, trainer->values[l], weights + sl_net_weight_at(shape, l),
                               weights + sl_net_bias_at(shape, l), last ? logits : trainer->sums[l + 1]));
        if (!last) finish_layer(trainer, l + 1, product.threads);
    }
    return SL_OK;
}

/* Computes the gradients by layer l's weights and inputs. `by_outputs` is the gradient by its outputs before their
 * activation. */
static sl_status backward_products(sl_net_trainer *trainer, size_t layer, const float *weights, const float *by_outputs,
                                   float *weight_gradient) {
    size_t in = trainer->shape.width[layer], out = trainer->shape.width[layer + 1], rows = trainer->rows;
    sl_product_shape by_weights = {
        .rows = in, .in = rows, .out = out, .stride = in, .src_transposed = 1, .activation = SL_LINEAR};
    sl_product_shape by_inputs = {
        .rows = rows, .in = out, .out = in, .stride = out, .weights_transposed = 1, .activation = SL_LINEAR};
    by_weights.threads = by_inputs.threads = threads_for(trainer, layer);
    SL_TRY(sl_products_run(trainer->products, &by_weights, trainer->values[layer], by_outputs, NULL, weight_gradient));
    return sl_products_run(trainer->products, &by_inputs, by_outputs, weights, NULL, trainer->gradients[layer]);
}

sl_status sl_net_trainer_backward(sl_net_trainer *trainer, const float *weights, const float *output_gradient,
                                  float *gradient) {
    const sl_net_shape *shape = &trainer->shape;
    size_t outputs = shape->width[shape->layers];
    if (!trainer->rows) memset(gradient, 0, sl_net_size(shape) * sizeof *gradient);
    for (size_t l = 0; l < shape->layers; l++)
        memset(gradient + sl_net_bias_at(shape, l), 0, shape->width[l + 1] * sizeof *gradient);
    float *bias_gradient = gradient + sl_net_bias_at(shape, shape->layers - 1);
    for (size_t r = 0; r < trainer->rows; r++)
        for (size_t o = 0; o < outputs; o++)
            bias_gradient[o] += output_gradient[r * outputs + o];
    const float *by_outputs = output_gradient;
    for (size_t l = shape->layers; l-- > 0 && trainer->rows;) {
        size_t at = sl_net_weight_at(shape, l);
        SL_TRY(backward_products(trainer, l, weights + at, by_outputs, gradient + at));
        if (l > 0) backward_layer(trainer, l, threads_for(trainer, l), gradient + sl_net_bias_at(shape, l - 1));
        by_outputs = trainer->gradients[l];
    }
    return SL_OK;
}
