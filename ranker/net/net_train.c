/* A net for training: the activations of a mini-batch, and the gradients by them. The caller owns the weights, which
 * change between steps and stay row-major. */
#include "base/random.h"
#include "base/thread.h"
#include "ranker/net/net_fake.h"
#include "ranker/net/net_product.h"

#include <string.h>

/* With fewer multiplications than this, a second thread costs more than it saves. */
#define WORK_OF_A_THREAD ((size_t)1 << 22)
#define DROPOUT_STEPS    65536.0
/* Floats of a layer's rows to activate and round at a time: 16 KB, which stay in a near cache. */
#define PIECE ((size_t)1 << 12)
/* Rounding weights on several threads pays from this many on. */
#define WEIGHTS_OF_A_THREAD ((size_t)1 << 16)

/* The rounded operands of products: 16-bit numbers; floats if their products are emulated; or the steps of fake
 * quantisation. */
typedef struct operands {
    sl_dtype type;               /* F32 without `fake`: there are no rounded operands */
    sl_net_fake *fake;           /* NULL without fake quantisation */
    size_t width;                /* bytes of a number */
    void *weights;               /* in the layout of the weights' block */
    void *values[SL_MAX_LAYERS]; /* inputs of each layer */
    void *gradient;              /* by the outputs of the layer that backward has reached */
} operands;

struct sl_net_trainer {
    sl_allocator allocator;
    sl_net_shape shape;
    const sl_loops *loops;
    sl_products *products;
    size_t max_rows, threads;
    double dropout;
    operands rounded;
    /* The last forward, for backward: */
    int rounds; /* whether its operands are rounded */
    size_t rows;
    uint64_t seed, step;
    float *values[SL_MAX_LAYERS];    /* inputs of each layer */
    float *sums[SL_MAX_LAYERS];      /* GELU: the sums before the activation; else the same as `values` */
    float *gradients[SL_MAX_LAYERS]; /* gradients of the loss by each layer's inputs */
    float *bias_parts;               /* column sums of each thread's rows, part_stride floats apart */
    size_t part_stride;
    size_t first_row; /* place of row 0 in a mini-batch that trainers share */
    sl_net_layer_fn on_layer;
    void *on_layer_ctx;
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
    for (size_t l = 0; l <= shape->layers; l++) {
        size_t bytes;
        if (!sl_mul(trainer->max_rows, shape->width[l] * sizeof(float), &bytes))
            return sl_fail(SL_ENOMEM, "batches of %zu rows do not fit; use smaller ones", trainer->max_rows);
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
    trainer->part_stride = sl_round_up(sl_net_widest(shape, 0), SL_CACHE_LINE / sizeof(float));
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

/* ---- Operands of 16 bits ---- */

/* Returns the numbers in the widest gradient by a layer's outputs. */
static size_t gradient_count(const sl_net_trainer *trainer) {
    size_t widest = 0;
    for (size_t l = 1; l <= trainer->shape.layers; l++)
        widest = trainer->shape.width[l] > widest ? trainer->shape.width[l] : widest;
    return trainer->max_rows * widest;
}

static int has_operands(const operands *rounded) {
    return rounded->type != SL_F32 || rounded->fake;
}

static void free_operands(const sl_net_trainer *trainer, operands *rounded) {
    const sl_net_shape *shape = &trainer->shape;
    sl_net_fake_free(rounded->fake);
    sl_mem_free(&trainer->allocator, rounded->weights, sl_net_size(shape) * rounded->width);
    for (size_t l = 0; l < shape->layers; l++)
        sl_mem_free(&trainer->allocator, rounded->values[l], trainer->max_rows * shape->width[l] * rounded->width);
    sl_mem_free(&trainer->allocator, rounded->gradient, gradient_count(trainer) * rounded->width);
    *rounded = (operands){.type = SL_F32};
}

static sl_status alloc_operands(const sl_net_trainer *trainer, operands *rounded) {
    const sl_net_shape *shape = &trainer->shape;
    const sl_allocator *allocator = &trainer->allocator;
    SL_TRY(sl_mem_alloc(allocator, sl_net_size(shape) * rounded->width, &rounded->weights));
    for (size_t l = 0; l < shape->layers; l++)
        SL_TRY(sl_mem_alloc(allocator, trainer->max_rows * shape->width[l] * rounded->width, &rounded->values[l]));
    return sl_mem_alloc(allocator, gradient_count(trainer) * rounded->width, &rounded->gradient);
}

/* Replaces the trainer's operands. Takes over `fake`, also on failure. */
static sl_status replace_operands(sl_net_trainer *trainer, sl_dtype type, sl_net_fake *fake) {
    int narrow = type != SL_F32 && sl_net_multiplies(type);
    operands rounded = {.type = type, .fake = fake, .width = narrow ? sizeof(uint16_t) : sizeof(float)};
    if (has_operands(&rounded)) {
        sl_status status = alloc_operands(trainer, &rounded);
        if (status != SL_OK) {
            free_operands(trainer, &rounded);
            return status;
        }
    }
    free_operands(trainer, &trainer->rounded);
    trainer->rounded = rounded;
    return SL_OK;
}

sl_status sl_net_trainer_set_type(sl_net_trainer *trainer, sl_dtype type) {
    return replace_operands(trainer, type, NULL);
}

sl_status sl_net_trainer_set_fake(sl_net_trainer *trainer, const sl_fake_layer *layers) {
    sl_net_fake *fake = NULL;
    if (layers) SL_TRY(sl_net_fake_create(&trainer->shape, trainer->threads, layers, &trainer->allocator, &fake));
    return replace_operands(trainer, SL_F32, fake);
}

sl_net_fake *sl_net_trainer_get_fake(const sl_net_trainer *trainer) {
    return trainer->rounded.fake;
}

static int emulates(const operands *rounded) {
    return rounded->type != SL_F32 && rounded->width == sizeof(float);
}

int sl_net_trainer_emulates(const sl_net_trainer *trainer) {
    return emulates(&trainer->rounded);
}

/* Returns the address of number `at` among rounded numbers. */
static void *rounded_at(const sl_net_trainer *trainer, void *numbers, size_t at) {
    return (char *)numbers + at * trainer->rounded.width;
}

/* Rounds numbers `at` to at + count of `from` into the same places of `to`. */
static void round_range(const sl_net_trainer *trainer, const float *from, void *to, size_t at, size_t count) {
    const operands *rounded = &trainer->rounded;
    if (emulates(rounded))
        trainer->loops->round(from + at, count, rounded->type, (float *)to + at);
    else
        trainer->loops->narrow(from + at, count, rounded->type, (uint16_t *)to + at);
}

static void round_on_threads(const sl_net_trainer *trainer, const float *from, void *to, size_t count) {
    size_t worth = count / WEIGHTS_OF_A_THREAD + 1, threads = worth < trainer->threads ? worth : trainer->threads;
    if (threads == 1) {
        round_range(trainer, from, to, 0, count);
        return;
    }
#pragma omp parallel for num_threads((int)threads) schedule(static, 1)
    for (size_t t = 0; t < threads; t++) {
        size_t begin = count * t / threads, end = count * (t + 1) / threads;
        round_range(trainer, from, to, begin, end - begin);
    }
}

/* Returns the type of the products' operands in this step. */
static sl_dtype product_type(const sl_net_trainer *trainer) {
    return trainer->rounds && !emulates(&trainer->rounded) ? trainer->rounded.type : SL_F32;
}

void sl_net_trainer_free(sl_net_trainer *trainer) {
    if (!trainer) return;
    sl_allocator allocator = trainer->allocator;
    free_operands(trainer, &trainer->rounded);
    sl_products_free(trainer->products);
    for (size_t l = 0; l < trainer->shape.layers; l++) {
        if (trainer->sums[l] != trainer->values[l]) sl_mem_free(&allocator, trainer->sums[l], row_bytes(trainer, l));
        sl_mem_free(&allocator, trainer->values[l], row_bytes(trainer, l));
        sl_mem_free(&allocator, trainer->gradients[l], row_bytes(trainer, l));
    }
    sl_mem_free(&allocator, trainer->bias_parts, parts_bytes(trainer));
    SL_FREE(&allocator, trainer);
}

float *sl_net_trainer_input(sl_net_trainer *trainer) {
    return trainer->values[0];
}

void sl_net_trainer_set_first_row(sl_net_trainer *trainer, size_t row) {
    trainer->first_row = row;
}

void sl_net_trainer_on_layer(sl_net_trainer *trainer, sl_net_layer_fn call, void *ctx) {
    trainer->on_layer = call;
    trainer->on_layer_ctx = ctx;
}

const float *sl_net_trainer_layer_inputs(const sl_net_trainer *trainer, size_t layer) {
    return trainer->values[layer];
}

const float *sl_net_trainer_input_gradient(const sl_net_trainer *trainer) {
    return trainer->gradients[0];
}

/* ---- Between the products ---- */

/* Some rows of the mini-batch, and the number of their thread. */
typedef struct row_span {
    size_t first, rows, thread;
} row_span;

/* Returns the threads for a layer, by the work of its product. The same threads do all that concerns its matrices. */
static size_t threads_for(const sl_net_trainer *trainer, size_t layer) {
    size_t work = trainer->rows * trainer->shape.width[layer] * trainer->shape.width[layer + 1];
    size_t worth = work / WORK_OF_A_THREAD + 1;
    return worth < trainer->threads ? worth : trainer->threads;
}

/* Returns the dropout of a layer's inputs from row `first` on. */
static sl_dropout dropout_of(const sl_net_trainer *trainer, size_t layer, size_t first) {
    double kept = 1 - trainer->dropout;
    uint64_t seed = sl_random_at(sl_random_at(trainer->seed, trainer->step), layer);
    return (sl_dropout){.seed = seed,
                        .first_row = trainer->first_row + first,
                        .threshold = (uint32_t)(trainer->dropout * DROPOUT_STEPS + 0.5),
                        .scale = (float)(1 / kept)};
}

static int has_dropout(const sl_net_trainer *trainer) {
    return trainer->dropout > 0 && trainer->seed != 0;
}

/* Returns part `part` of `parts` equal parts of the mini-batch's rows. */
static row_span part_of_rows(const sl_net_trainer *trainer, size_t part, size_t parts) {
    size_t begin = trainer->rows * part / parts, end = trainer->rows * (part + 1) / parts;
    return (row_span){.first = begin, .rows = end - begin, .thread = part};
}

/* Returns the rows of a layer to process at a time. */
static size_t piece_rows(const sl_net_trainer *trainer, size_t layer, size_t rows) {
    size_t piece = PIECE / trainer->shape.width[layer] + 1;
    return trainer->rounds && piece < rows ? piece : rows;
}

static void apply_dropout(const sl_net_trainer *trainer, size_t layer, row_span part, float *numbers) {
    if (!has_dropout(trainer)) return;
    sl_dropout drop = dropout_of(trainer, layer, part.first);
    trainer->loops->dropout(numbers, part.rows, trainer->shape.width[layer], &drop);
}

/* Returns the fake quantisation of this step, or NULL. */
static sl_net_fake *fake_of(const sl_net_trainer *trainer) {
    return trainer->rounds ? trainer->rounded.fake : NULL;
}

/* Makes a layer's inputs from the product's results: activation, then dropout. Serving fuses the activation with the
 * product. Training does not, because oneDNN's ReLU gives 0 for NaN, and diverged weights would go unnoticed. */
static void activate_piece(sl_net_trainer *trainer, size_t layer, row_span part) {
    size_t at = part.first * trainer->shape.width[layer], count = part.rows * trainer->shape.width[layer];
    float *sums = trainer->sums[layer] + at, *values = trainer->values[layer] + at;
    sl_net_fake *fake = fake_of(trainer);
    float *steps = fake ? (float *)trainer->rounded.values[layer] + at : NULL;
    if (fake) sl_net_fake_outputs(fake, layer - 1, sums, part.rows, steps);
    trainer->loops->activate(sums, count, trainer->shape.activation, values);
    /* Ranges are of values without dropout, as in serving. */
    if (fake) sl_net_fake_inputs(fake, layer, part.thread, values, count, steps);
    apply_dropout(trainer, layer, part, fake ? steps : values);
    if (trainer->rounds && !fake)
        round_range(trainer, trainer->values[layer], trainer->rounded.values[layer], at, count);
}

static void activate_rows(sl_net_trainer *trainer, size_t layer, row_span part) {
    size_t end = part.first + part.rows;
    for (size_t at = part.first, rows; at < end; at += rows) {
        rows = piece_rows(trainer, layer, end - at);
        activate_piece(trainer, layer, (row_span){at, rows, part.thread});
    }
}

static void activate_layer(sl_net_trainer *trainer, size_t layer, size_t threads) {
    if (threads == 1) {
        activate_rows(trainer, layer, part_of_rows(trainer, 0, 1));
        return;
    }
#pragma omp parallel for num_threads((int)threads) schedule(static, 1)
    for (size_t t = 0; t < threads; t++)
        activate_rows(trainer, layer, part_of_rows(trainer, t, threads));
}

/* Turns the gradient by a layer's inputs into the gradient by the sums before the activation. Adds the column sums to
 * `sums`. */
static void backward_piece(sl_net_trainer *trainer, size_t layer, row_span part, float *sums) {
    size_t width = trainer->shape.width[layer], at = part.first * width;
    float *gradient = trainer->gradients[layer] + at;
    const float *out = trainer->sums[layer], *values = trainer->values[layer];
    sl_net_fake *fake = fake_of(trainer);
    float scale = 1;
    apply_dropout(trainer, layer, part, gradient);
    if (has_dropout(trainer) && out == values && !fake) scale = dropout_of(trainer, layer, part.first).scale;
    if (fake) sl_net_fake_backward(fake, layer, part.thread, values + at, gradient, part.rows * width);
    trainer->loops->backward(out + at, gradient, part.rows, width, trainer->shape.activation, scale, sums);
    if (fake)
        sl_net_fake_gradient(fake, layer - 1, gradient, part.rows, (float *)trainer->rounded.gradient + at);
    else if (trainer->rounds)
        round_range(trainer, trainer->gradients[layer], trainer->rounded.gradient, at, part.rows * width);
}

static void backward_rows(sl_net_trainer *trainer, size_t layer, row_span part, float *sums) {
    size_t end = part.first + part.rows;
    for (size_t at = part.first, rows; at < end; at += rows) {
        rows = piece_rows(trainer, layer, end - at);
        backward_piece(trainer, layer, (row_span){at, rows, part.thread}, sums);
    }
}

static void backward_layer(sl_net_trainer *trainer, size_t layer, size_t threads, float *bias_gradient) {
    if (threads == 1) {
        backward_rows(trainer, layer, part_of_rows(trainer, 0, 1), bias_gradient);
        return;
    }
    size_t width = trainer->shape.width[layer];
#pragma omp parallel for num_threads((int)threads) schedule(static, 1)
    for (size_t t = 0; t < threads; t++) {
        float *part = trainer->bias_parts + t * trainer->part_stride;
        memset(part, 0, width * sizeof *part);
        backward_rows(trainer, layer, part_of_rows(trainer, t, threads), part);
    }
    for (size_t t = 0; t < threads; t++)
        trainer->loops->add(bias_gradient, trainer->bias_parts + t * trainer->part_stride, width);
}

/* ---- A step ---- */

/* Runs fake quantisation on the first layer's inputs, or, backward, on the gradient by them. */
static void fake_first_layer(sl_net_trainer *trainer, int backward) {
    sl_net_fake *fake = fake_of(trainer);
    size_t threads = threads_for(trainer, 0), width = trainer->shape.width[0];
#pragma omp parallel for num_threads((int)threads) schedule(static, 1) if (threads > 1)
    for (size_t t = 0; t < threads; t++) {
        const row_span part = part_of_rows(trainer, t, threads);
        size_t at = part.first * width, count = part.rows * width;
        if (backward)
            sl_net_fake_backward(fake, 0, t, trainer->values[0] + at, trainer->gradients[0] + at, count);
        else
            sl_net_fake_inputs(fake, 0, t, trainer->values[0] + at, count, (float *)trainer->rounded.values[0] + at);
    }
}

/* Rounds the operands that a step begins with: the weights and the first layer's inputs. */
static void round_first_operands(sl_net_trainer *trainer, const float *weights) {
    const sl_net_shape *shape = &trainer->shape;
    const operands *rounded = &trainer->rounded;
    if (rounded->fake) {
        sl_net_fake_weights(rounded->fake, weights, rounded->weights);
        fake_first_layer(trainer, 0);
        return;
    }
    round_on_threads(trainer, weights, rounded->weights, sl_net_size(shape));
    round_on_threads(trainer, trainer->values[0], rounded->values[0], trainer->rows * shape->width[0]);
}

/* Runs the layers on the trainer's current rows. */
static sl_status run_layers(sl_net_trainer *trainer, const float *weights, float *logits) {
    const sl_net_shape *shape = &trainer->shape;
    const operands *rounded = &trainer->rounded;
    const sl_net_fake *fake = fake_of(trainer);
    size_t rows = trainer->rows;
    if (trainer->rounds) round_first_operands(trainer, weights);
    for (size_t l = 0; l < shape->layers && rows; l++) {
        int last = l + 1 == shape->layers;
        size_t at = sl_net_weight_at(shape, l);
        const void *src = trainer->rounds ? rounded->values[l] : trainer->values[l];
        const void *matrix = trainer->rounds ? rounded_at(trainer, rounded->weights, at) : weights + at;
        sl_product_shape product = {.rows = rows,
                                    .in = shape->width[l],
                                    .out = shape->width[l + 1],
                                    .stride = shape->width[l],
                                    .type = product_type(trainer),
                                    .has_bias = !(fake && fake->layers[l].is_int8),
                                    .activation = SL_LINEAR,
                                    .threads = threads_for(trainer, l)};
        SL_TRY(sl_products_run(trainer->products, &product, src, matrix, weights + sl_net_bias_at(shape, l),
                               last ? logits : trainer->sums[l + 1]));
        if (!last) activate_layer(trainer, l + 1, product.threads);
        if (last && fake) sl_net_fake_outputs(fake, l, logits, rows, NULL);
    }
    return SL_OK;
}

static sl_status check_rows(sl_net_trainer *trainer, size_t rows) {
    if (rows <= trainer->max_rows) return SL_OK;
    return sl_fail(SL_EINVAL, "%zu rows for a trainer of at most %zu", rows, trainer->max_rows);
}

sl_status sl_net_trainer_forward(sl_net_trainer *trainer, const float *weights, size_t rows, uint64_t seed,
                                 uint64_t step, float *logits) {
    SL_TRY(check_rows(trainer, rows));
    trainer->rows = rows;
    trainer->seed = seed;
    trainer->step = step;
    trainer->rounds = has_operands(&trainer->rounded);
    return run_layers(trainer, weights, logits);
}

sl_status sl_net_trainer_evaluate(sl_net_trainer *trainer, const float *weights, size_t rows, float *logits) {
    SL_TRY(check_rows(trainer, rows));
    trainer->rows = rows;
    trainer->seed = 0;
    trainer->rounds = trainer->rounded.fake != NULL;
    return run_layers(trainer, weights, logits);
}

/* Computes the gradients by a layer's weights and inputs. `by_outputs` is the gradient by its outputs before their
 * activation. Both matrices have product_type. */
static sl_status backward_products(sl_net_trainer *trainer, size_t layer, const void *weights, const void *by_outputs,
                                   float *weight_gradient) {
    size_t in = trainer->shape.width[layer], out = trainer->shape.width[layer + 1], rows = trainer->rows;
    sl_product_shape by_weights = {
        .rows = in, .in = rows, .out = out, .stride = in, .src_transposed = 1, .activation = SL_LINEAR};
    sl_product_shape by_inputs = {
        .rows = rows, .in = out, .out = in, .stride = out, .weights_transposed = 1, .activation = SL_LINEAR};
    by_weights.threads = by_inputs.threads = threads_for(trainer, layer);
    by_weights.type = by_inputs.type = product_type(trainer);
    const void *values = trainer->rounds ? trainer->rounded.values[layer] : trainer->values[layer];
    SL_TRY(sl_products_run(trainer->products, &by_weights, values, by_outputs, NULL, weight_gradient));
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
    const operands *rounded = &trainer->rounded;
    sl_net_fake *fake = fake_of(trainer);
    const void *by_outputs = trainer->rounds ? rounded->gradient : output_gradient;
    if (fake)
        sl_net_fake_gradient(fake, shape->layers - 1, output_gradient, trainer->rows, rounded->gradient);
    else if (trainer->rounds)
        round_on_threads(trainer, output_gradient, rounded->gradient, trainer->rows * outputs);
    for (size_t l = shape->layers; l-- > 0 && trainer->rows;) {
        size_t at = sl_net_weight_at(shape, l);
        const void *matrix = trainer->rounds ? rounded_at(trainer, rounded->weights, at) : weights + at;
        SL_TRY(backward_products(trainer, l, matrix, by_outputs, gradient + at));
        if (fake) sl_net_fake_weight_gradient(fake, l, weights + at, gradient + at);
        if (trainer->on_layer) trainer->on_layer(trainer->on_layer_ctx, l);
        if (l > 0) backward_layer(trainer, l, threads_for(trainer, l), gradient + sl_net_bias_at(shape, l - 1));
        if (!trainer->rounds) by_outputs = trainer->gradients[l];
    }
    for (size_t l = shape->layers; l-- > 0 && !trainer->rows && trainer->on_layer;)
        trainer->on_layer(trainer->on_layer_ctx, l);
    if (fake) fake_first_layer(trainer, 1);
    return SL_OK;
}

int sl_net_trainer_unscale(sl_net_trainer *trainer, float *gradient, float factor) {
    const sl_net_shape *shape = &trainer->shape;
    int finite = !gradient || trainer->loops->unscale(gradient, sl_net_size(shape), factor);
    return trainer->loops->unscale(trainer->gradients[0], trainer->rows * shape->width[0], factor) && finite;
}
