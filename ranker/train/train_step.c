#include "ranker/train/train_step.h"

#include "ranker/net/loss.h"
#include "ranker/train/table_shards.h"
#include "ranker/train/train_reduce.h"

#include <math.h>
#include <string.h>

/* With fewer weights, waking threads costs more than it saves. */
#define WEIGHTS_FOR_THREADS ((size_t)1 << 15)

/* Training rows that calibrate the ranges. */
#define CALIBRATION_ROWS ((size_t)4096)

/* Floats in a cache line. Two threads never write to the same line. */
#define LINE (SL_CACHE_LINE / sizeof(float))

static const double pi = 3.14159265358979323846;

/* Factor of the rates while the training warms up (Goyal et al. 2017, arXiv 1706.02677). */
static double warm_up_factor(const sl_trainer *trainer) {
    const sl_train_ranks *on = &trainer->on;
    const uint64_t step = sl_trainer_step_number(trainer);
    if (step >= on->warm_up_steps) return 1;
    return trainer->warm_up_from + (1 - trainer->warm_up_from) * (double)step / (double)on->warm_up_steps;
}

/* Factor of the rates by the schedule, from 1 to 0. */
static double rate_factor(const sl_trainer *trainer) {
    double total = (double)trainer->epochs * (double)sl_trainer_minibatches(trainer);
    double passed = (double)sl_trainer_step_number(trainer) / total;
    switch (trainer->spec->schedule) {
    case SL_SCHEDULE_LINEAR:
        return 1 - passed;
    case SL_SCHEDULE_COSINE:
        return 0.5 * (1 + cos(pi * passed));
    case SL_SCHEDULE_CONSTANT:
        break;
    }
    return 1;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Forward
 * ------------------------------------------------------------------------------------------------------------- */

/* Writes the mini-batch's embeddings and dense columns into the first layer's input. Each thread takes a range of
 * rows. */
static void fill_inputs(sl_trainer *trainer, size_t count) {
    const sl_features *features = trainer->features;
    const float *const *embeddings = (const float *const *)trainer->weights.embeddings;
    float *input = sl_net_trainer_input(trainer->net);
    size_t width = features->deep_inputs, threads = trainer->threads;
    if (threads == 1 || count * width < WEIGHTS_FOR_THREADS) {
        sl_deep_inputs(features, embeddings, NULL, &trainer->minibatch.rows, SL_ALL_SIDES, width, input);
        return;
    }
#pragma omp parallel for schedule(static) num_threads((int)threads)
    for (size_t t = 0; t < threads; t++) {
        size_t from = count * t / threads, to = count * (t + 1) / threads;
        sl_encoded part = sl_encoded_part(features, &trainer->minibatch.rows, from, to - from);
        sl_deep_inputs(features, embeddings, NULL, &part, SL_ALL_SIDES, width, input + from * width);
    }
}

/* Computes the deep part's logits. A training step uses dropout and the training's precision. Otherwise the result is
 * as in serving. */
static sl_status deep_logits(sl_trainer *trainer, int in_step, float *logits) {
    const float *weights = trainer->weights.dense;
    size_t count = trainer->minibatch.rows.rows;
    fill_inputs(trainer, count);
    if (trainer->ranges && trainer->ranges->started) sl_ranges_set_layers(trainer->ranges, weights);
    if (!in_step) return sl_net_trainer_evaluate(trainer->net, weights, count, logits);
    /* Seed 0 would mean no dropout. */
    uint64_t seed = trainer->spec->dropout > 0 ? trainer->spec->seed | (uint64_t)1 << 63 : 0;
    sl_net_trainer_set_first_row(trainer->net, (size_t)trainer->part.before);
    return sl_net_trainer_forward(trainer->net, weights, count, seed, sl_trainer_step_number(trainer), logits);
}

/* Computes the mini-batch's logits: deep part plus wide part plus bias. */
static sl_status minibatch_logits(sl_trainer *trainer, int in_step, float *logits) {
    const sl_features *features = trainer->features;
    const sl_weights *weights = &trainer->weights;
    size_t outputs = features->outputs, count = trainer->minibatch.rows.rows;
    if (trainer->net)
        SL_TRY(deep_logits(trainer, in_step, logits));
    else
        memset(logits, 0, count * outputs * sizeof *logits);
    if (features->wide_size) sl_wide_sums(features, weights->wide, &trainer->minibatch.rows, SL_ALL_SIDES, logits);
    for (size_t r = 0; r < count; r++)
        for (size_t o = 0; o < outputs; o++)
            logits[r * outputs + o] += weights->bias[o];
    return SL_OK;
}

/* Computes the gradient of the mean loss of `total` rows by the logits of some. Returns the sum of their losses. */
static double loss_gradient(sl_trainer *trainer, const sl_loss_rows *rows, const uint32_t *numbers, uint64_t total) {
    sl_loss loss = trainer->spec->loss;
    float scale = 1.0f / (float)total;
    if (trainer->distil) return sl_distil_sum(trainer->distil, loss, rows, numbers, scale, trainer->logit_gradient);
    return sl_loss_sum(loss, rows, scale, trainer->logit_gradient);
}

sl_status sl_trainer_forward(sl_trainer *trainer) {
    const sl_dataset *data = &trainer->data;
    sl_minibatch *minibatch = &trainer->minibatch;
    trainer->part = sl_dataset_minibatch(data, trainer->position.minibatch, trainer->batch_rows);
    const sl_minibatch_part part = trainer->part;
    const sl_forget_step at = {trainer->spec->seed, sl_trainer_step_number(trainer), (size_t)part.before,
                               trainer->threads};
    SL_TRY(sl_minibatch_gather(minibatch, data, data->order + part.first, part.count, trainer->threads));
    sl_forget_values(&trainer->forgetter, minibatch, &at);
    SL_TRY(sl_shards_fetch(trainer));
    SL_TRY(minibatch_logits(trainer, 1, trainer->logits));
    const sl_loss_rows rows = {.rows = part.count,
                               .outputs = trainer->features->outputs,
                               .logits = trainer->logits,
                               .labels = minibatch->labels,
                               .weights = minibatch->weights};
    trainer->loss_sum = loss_gradient(trainer, &rows, data->order + part.first, part.total);
    trainer->not_finite = !isfinite(trainer->loss_sum);
    trainer->weight_sum = 0;
    for (size_t r = 0; r < part.count; r++)
        trainer->weight_sum += (double)minibatch->weights[r];
    return SL_OK;
}

sl_status sl_trainer_logits(sl_trainer *trainer, const uint32_t *numbers, size_t count, float *logits) {
    SL_TRY(sl_minibatch_gather(&trainer->minibatch, &trainer->data, numbers, count, trainer->threads));
    return minibatch_logits(trainer, 0, logits);
}

sl_status sl_trainer_gradient(sl_trainer *trainer, const uint32_t *numbers, size_t count) {
    SL_TRY(sl_trainer_logits(trainer, numbers, count, trainer->logits));
    const sl_loss_rows rows = {.rows = count,
                               .outputs = trainer->features->outputs,
                               .logits = trainer->logits,
                               .labels = trainer->minibatch.labels,
                               .weights = trainer->minibatch.weights};
    if (!isfinite(loss_gradient(trainer, &rows, numbers, count)))
        return sl_fail(SL_EVALUE, "the loss of the training rows is not finite; look for huge values in the columns");
    return sl_net_trainer_backward(trainer->net, trainer->weights.dense, trainer->logit_gradient,
                                   trainer->dense_gradient);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The beginning of INT8
 * ------------------------------------------------------------------------------------------------------------- */

/* Shows the observers every layer's inputs, computed in F32. */
static sl_status observe_inputs(sl_trainer *trainer, sl_observer *const *observers) {
    size_t count = trainer->data.train_count < CALIBRATION_ROWS ? trainer->data.train_count : CALIBRATION_ROWS;
    for (size_t at = 0, rows; at < count; at += rows) {
        rows = count - at < trainer->minibatch_rows ? count - at : trainer->minibatch_rows;
        SL_TRY(sl_trainer_logits(trainer, trainer->data.order + at, rows, trainer->logits));
        for (size_t l = 0; l < trainer->shape.layers; l++)
            sl_observer_add(observers[l], sl_net_trainer_layer_inputs(trainer->net, l), rows * trainer->shape.width[l]);
    }
    return SL_OK;
}

sl_status sl_trainer_start_ranges(sl_trainer *trainer) {
    sl_ranges *ranges = trainer->ranges;
    sl_observer *observers[SL_MAX_LAYERS] = {NULL};
    sl_status status = SL_OK;
    if (!ranges || ranges->started || sl_trainer_step_number(trainer) < ranges->first_step) return SL_OK;
    SL_TRY(sl_shards_sync(trainer));
    for (size_t l = 0; l < trainer->shape.layers; l++)
        SL_TRY_GOTO(sl_observer_create(&trainer->allocator, &observers[l]), done);
    SL_TRY_GOTO(observe_inputs(trainer, observers), done);
    for (size_t l = 0; l < trainer->shape.layers && status == SL_OK; l++)
        if (ranges->layers[l].is_int8) status = sl_ranges_calibrate(ranges, l, observers[l], trainer->weights.dense);
    SL_TRY_GOTO(sl_trainer_share_ranges(trainer, status), done);
    ranges->started = 1;
    status = sl_trainer_use_ranges(trainer);
done:
    for (size_t l = 0; l < trainer->shape.layers; l++)
        sl_observer_free(observers[l]);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Steps
 * ------------------------------------------------------------------------------------------------------------- */

static void step_range(sl_trainer *trainer, size_t from, size_t to, const sl_step *step) {
    if (from >= to) return;
    float *weights = trainer->weights.dense + from, *state = trainer->dense_state + from;
    const float *gradient = trainer->dense_gradient + from;
    if (trainer->spec->optimizer == SL_ADAM)
        trainer->loops->adam(weights, state, state + trainer->dense_size, gradient, to - from, step);
    else
        trainer->loops->adagrad(weights, state, gradient, to - from, step);
}

/* Steps one thread's part of the block. Biases do not decay. */
static void step_part(sl_trainer *trainer, size_t from, size_t to, const sl_step *step) {
    const sl_net_shape *shape = &trainer->shape;
    sl_step plain = *step;
    plain.l2 = 0;
    for (size_t layer = 0; layer < shape->layers; layer++) {
        size_t weight = sl_net_weight_at(shape, layer), bias = sl_net_bias_at(shape, layer);
        size_t end = bias + shape->width[layer + 1];
        step_range(trainer, from > weight ? from : weight, to < bias ? to : bias, step);
        step_range(trainer, from > bias ? from : bias, to < end ? to : end, &plain);
    }
}

static void step_dense(sl_trainer *trainer, const sl_step *step) {
    size_t size = trainer->dense_size, threads = trainer->threads;
    if (threads == 1 || size < WEIGHTS_FOR_THREADS) {
        step_part(trainer, 0, size, step);
        return;
    }
#pragma omp parallel for schedule(static) num_threads((int)threads)
    for (size_t t = 0; t < threads; t++) {
        size_t lines = (size + LINE - 1) / LINE;
        size_t from = lines * t / threads * LINE, to = lines * (t + 1) / threads * LINE;
        step_part(trainer, from, to < size ? to : size, step);
    }
}

/* Computes the gradients of the layers and of their inputs. Under FP16 it multiplies the logits' gradients by the loss
 * scale, and divides the results by it. A scale that is a power of 2 adds no rounding error. */
static sl_status collect_dense(sl_trainer *trainer) {
    float *by_logits = trainer->logit_gradient, scale = (float)trainer->precision.loss_scale;
    size_t count = trainer->minibatch.rows.rows * trainer->features->outputs;
    int scaled = trainer->precision.precision == SL_TRAIN_FP16;
    for (size_t i = 0; scaled && i < count; i++)
        by_logits[i] *= scale;
    sl_trainer_reduce_begin(trainer);
    sl_status status =
        sl_net_trainer_backward(trainer->net, trainer->weights.dense, by_logits, trainer->dense_gradient);
    if (status != SL_OK) return sl_trainer_reduce_end(trainer, status);
    /* The sums of several ranks are not complete yet. */
    float *summed = trainer->on.ranks ? NULL : trainer->dense_gradient;
    trainer->overflowed = scaled && !sl_net_trainer_unscale(trainer->net, summed, 1 / scale);
    return SL_OK;
}

/* Divides the loss scale out of the sums of several ranks. An overflow shows in them on every rank. */
static void unscale_sums(sl_trainer *trainer) {
    const float scale = (float)trainer->precision.loss_scale;
    if (trainer->precision.precision != SL_TRAIN_FP16 || !trainer->net) return;
    trainer->overflowed |= !trainer->loops->unscale(trainer->dense_gradient, trainer->dense_size, 1 / scale);
}

sl_status sl_trainer_collect(sl_trainer *trainer) {
    const sl_encoded *rows = &trainer->minibatch.rows;
    const float *const *embeddings = (const float *const *)trainer->weights.embeddings;
    trainer->overflowed = 0;
    sl_wide_collect(trainer->sparse, rows, trainer->logit_gradient);
    if (trainer->net) {
        SL_TRY(collect_dense(trainer));
        if (!trainer->overflowed)
            sl_embedding_collect(trainer->sparse, embeddings, rows, sl_net_trainer_input_gradient(trainer->net));
    }
    if (!trainer->on.ranks) return SL_OK;
    SL_TRY(sl_trainer_reduce(trainer));
    unscale_sums(trainer);
    return SL_OK;
}

/* Parameters of the optimisers' step `number`, from 1. */
static sl_step step_of(const sl_spec *spec, double factor, double number) {
    return (sl_step){.rate = (float)(spec->deep_rate * factor),
                     .l2 = (float)spec->deep_l2,
                     .beta1 = (float)spec->beta1,
                     .beta2 = (float)spec->beta2,
                     .epsilon = (float)spec->epsilon,
                     .correct1 = (float)(1 / (1 - pow(spec->beta1, number))),
                     .correct2 = (float)(1 / (1 - pow(spec->beta2, number)))};
}

/* Steps the ranges. Their step numbers count from first_step. */
static void step_ranges(sl_trainer *trainer, double factor) {
    sl_ranges *ranges = trainer->ranges;
    if (!ranges || !ranges->started) return;
    const sl_step step =
        step_of(trainer->spec, factor, (double)(sl_trainer_step_number(trainer) - ranges->first_step) + 1);
    sl_ranges_step(ranges, sl_net_trainer_get_fake(trainer->net), &step);
}

void sl_trainer_apply(sl_trainer *trainer) {
    const sl_spec *spec = trainer->spec;
    /* Adam's moments do not see skipped steps. */
    double factor = rate_factor(trainer) * warm_up_factor(trainer) * trainer->rate_scale;
    double number = (double)(sl_trainer_step_number(trainer) - trainer->precision.skipped) + 1;
    const sl_step step = step_of(spec, factor, number);
    sl_wide_apply(trainer->sparse, trainer->weights.wide, trainer->weights.bias, spec->wide_rate * factor);
    if (!trainer->net) return;
    if (trainer->magnitude) sl_magnitude_note_zeros(trainer->magnitude, trainer->weights.dense);
    step_dense(trainer, &step);
    step_ranges(trainer, factor);
    if (trainer->magnitude)
        sl_magnitude_restore_and_cut(trainer->magnitude, trainer->weights.dense, sl_trainer_step_number(trainer));
    sl_embedding_apply(trainer->sparse, trainer->weights.embeddings, &step);
}
