/* Creates and frees a training's state. It calls neither the loop nor the checkpoint. */
#include "ranker/train/train_state.h"

#include "base/crc32c.h"
#include "ranker/features/table.h"
#include "ranker/train/warm_start.h"

#include <math.h>

/* Share of the steps that train in F32 before layers switch to INT8. */
#define FLOAT_SHARE 0.1

/* ---------------------------------------------------------------------------------------------------------------
 * Features and first weights
 * ------------------------------------------------------------------------------------------------------------- */

sl_status sl_train_fit(const char *text, const sl_rows *train, const sl_train_params *params, const sl_train_ranks *on,
                       sl_features **out) {
    sl_allocator allocator = sl_allocator_of(params->allocator);
    sl_spec *spec;
    *out = NULL;
    SL_TRY(sl_rows_check(train));
    if (params->init) {
        SL_TRY(sl_warm_start_features(text, params->init->features, params, out));
        sl_status same = sl_warm_start_check(*out, params->init);
        if (same == SL_OK) return SL_OK;
        sl_features_free(*out);
        *out = NULL;
        return same;
    }
    SL_TRY(sl_spec_read(text, &allocator, &spec));
    if (params->epochs) spec->epochs = params->epochs;
    if (params->seed) spec->seed = params->seed;
    sl_status status = train->rewind(train->ctx);
    if (status != SL_OK) {
        sl_spec_free(spec);
        return status;
    }
    const sl_fit_source source = {.lookup = params->lookup,
                                  .classes_of = sl_distils_alone(params) ? params->teacher->features : NULL,
                                  .ranks = on ? on->ranks : NULL,
                                  .position = on ? on->position : NULL};
    return sl_features_fit(spec, train, &source, out);
}

/* Sets the biases to the logarithms of the classes' shares. */
static sl_status set_class_biases(const sl_dataset *data, double least, const sl_allocator *allocator,
                                  sl_weights *weights) {
    const size_t outputs = data->features->outputs;
    sl_status status = SL_OK;
    double *shares = sl_mem_array(allocator, outputs, sizeof *shares, &status);
    SL_TRY(status);
    status = sl_dataset_class_shares(data, shares);
    for (size_t o = 0; o < outputs; o++)
        weights->bias[o] = (float)log(fmax(shares[o], least));
    SL_FREE_ARRAY(allocator, shares, outputs);
    return status;
}

/* Sets the biases to the prediction of a model without features: the mean of a value, the logit of the rate, the
 * logarithms of the classes' shares. A label that never occurs counts as half a row. */
static sl_status set_biases(const sl_dataset *data, const sl_allocator *allocator, sl_weights *weights) {
    const sl_features *features = data->features;
    const double least = 0.5 / (double)data->total_train;
    double mean;
    if (features->spec->loss == SL_LOSS_MULTICLASS) return set_class_biases(data, least, allocator, weights);
    SL_TRY(sl_dataset_label_mean(data, &mean));
    if (features->spec->loss == SL_LOSS_LOGISTIC) {
        double rate = fmin(fmax(mean, least), 1 - least);
        mean = log(rate / (1 - rate));
    }
    weights->bias[0] = (float)mean;
    return SL_OK;
}

sl_status sl_train_first_weights(const sl_dataset *data, const sl_net_shape *shape, const sl_allocator *allocator,
                                 sl_weights *out) {
    SL_TRY(sl_weights_create(data->features, shape, allocator, out));
    sl_weights_initialise(out, data->features, shape, data->features->spec->seed);
    const sl_status status = set_biases(data, allocator, out);
    if (status != SL_OK) sl_weights_free(out, data->features, shape, allocator);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The trainer
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status alloc_floats(const sl_trainer *trainer, size_t rows, size_t columns, float **out) {
    size_t count, bytes;
    void *block;
    if (!sl_mul(rows, columns, &count) || !sl_mul(count, sizeof **out, &bytes))
        return sl_fail(SL_ENOMEM, "%zu times %zu floats do not fit", rows, columns);
    SL_TRY(sl_mem_alloc(&trainer->allocator, bytes, &block));
    *out = block;
    return SL_OK;
}

sl_status sl_trainer_use_precision(sl_trainer *trainer, const sl_precision_state *precision) {
    sl_dtype now = sl_precision_type(trainer->precision.precision), type = sl_precision_type(precision->precision);
    if (trainer->net && type != now) SL_TRY(sl_net_trainer_set_type(trainer->net, type));
    trainer->precision = *precision;
    return SL_OK;
}

static sl_status create_net(sl_trainer *trainer) {
    const sl_spec *spec = trainer->spec;
    if (!trainer->shape.layers) return SL_OK;
    trainer->dense_size = sl_net_size(&trainer->shape);
    trainer->dense_states = spec->optimizer == SL_ADAM ? 2 : 1;
    SL_TRY(sl_net_trainer_create(&trainer->shape, trainer->minibatch_rows, trainer->threads, spec->dropout,
                                 &trainer->allocator, &trainer->net));
    SL_TRY(alloc_floats(trainer, trainer->dense_size, 1, &trainer->dense_gradient));
    return alloc_floats(trainer, trainer->dense_size, trainer->dense_states, &trainer->dense_state);
}

/* Sets the rows of a mini-batch: the spec's number, or all rows if there are fewer. A rank also validates in parts of
 * minibatch_rows. */
static void size_minibatch(sl_trainer *trainer) {
    const sl_dataset *data = &trainer->data;
    const size_t asked = trainer->on.batch_rows ? trainer->on.batch_rows : trainer->spec->minibatch_rows;
    const uint64_t most = data->total_train > data->total_valid ? data->total_train : data->total_valid;
    trainer->batch_rows = asked < most ? asked : most;
    const size_t validated = data->valid_count < asked ? data->valid_count : asked;
    trainer->minibatch_rows = sl_larger(sl_dataset_minibatch_most(data, trainer->batch_rows), validated);
    if (!trainer->minibatch_rows) trainer->minibatch_rows = 1;
}

/* Checks that some of the ranks' `total` rows have a weight above 0. `what` names the rows in the message. */
static sl_status check_weights(const sl_dataset *data, const uint32_t *numbers, size_t count, uint64_t total,
                               const char *what) {
    double weight;
    if (total == 0) return SL_OK;
    SL_TRY(sl_dataset_weight(data, numbers, count, &weight));
    if (weight > 0) return SL_OK;
    return sl_fail(
        SL_EVALUE,
        "all %llu rows %s have the weight 0 in column '%s', as any number below 7e-46 has; give some a weight "
        "above 0, or leave \"weight\" out of the spec",
        (unsigned long long)total, what, data->features->spec->weight);
}

/* Checks that the rows can teach something: weights above 0, more than one row, and for classes more than one label. */
static sl_status check_rows(const sl_trainer *trainer) {
    const sl_features *features = trainer->features;
    const sl_dataset *data = &trainer->data;
    const unsigned long long rows = data->total_train;
    int one = 0;
    float label;
    if (rows < 2)
        return sl_fail(SL_EINVAL, "1 row is left to train on, of %llu; give more rows",
                       rows + (unsigned long long)data->total_valid);
    SL_TRY(check_weights(data, data->train, data->train_count, data->total_train, "to train on"));
    SL_TRY(check_weights(data, data->valid, data->valid_count, data->total_valid, "of validation"));
    if (features->spec->loss == SL_LOSS_SQUARED || data->unlabelled) return SL_OK;
    SL_TRY(sl_dataset_has_one_label(data, &one, &label));
    if (!one) return SL_OK;
    if (features->spec->loss == SL_LOSS_MULTICLASS)
        return sl_fail(SL_EVALUE,
                       "all %llu rows to train on are of class '%s', which leaves nothing to tell apart; give rows of "
                       "other classes too",
                       rows, features->classes[(size_t)label]);
    return sl_fail(SL_EVALUE,
                   "all %llu rows to train on have the label %g, which leaves nothing to tell apart; give rows of both "
                   "labels, or look at the spec's \"positive\" or \"at_least\"",
                   rows, (double)label);
}

/* Adds a setting that changes the resulting weights to the fingerprint. Spec, seed and rows have fingerprints of their
 * own. */
static void add_to_settings(sl_trainer *trainer, const void *bytes, size_t size) {
    trainer->settings_crc = sl_crc32c(trainer->settings_crc, bytes, size);
}

static void fingerprint_settings(sl_trainer *trainer, const sl_train_params *params) {
    const sl_ranker *teacher = params->teacher;
    if (trainer->rate_scale != 1) add_to_settings(trainer, &trainer->rate_scale, sizeof trainer->rate_scale);
    const uint64_t together[] = {trainer->on.batch_rows, trainer->on.warm_up_steps};
    if (together[0] || together[1]) add_to_settings(trainer, together, sizeof together);
    if (!teacher) return;
    const double mix[] = {params->temperature, params->soft};
    add_to_settings(trainer, mix, sizeof mix);
    add_to_settings(trainer, teacher->weights.block, teacher->weights.block_size * sizeof(float));
}

void sl_trainer_set_weights(sl_trainer *trainer, const sl_weights *weights) {
    sl_weights_copy(&trainer->weights, weights, trainer->features, &trainer->shape);
    add_to_settings(trainer, weights->block, weights->block_size * sizeof(float));
}

sl_status sl_trainer_cut_weights(sl_trainer *trainer, double share, double end, int per_layer) {
    double total = (double)trainer->epochs * (double)sl_trainer_minibatches(trainer);
    uint64_t steps = (uint64_t)fmax(ceil(end * total), 1);
    const double cut[] = {share, (double)steps, per_layer};
    add_to_settings(trainer, cut, sizeof cut);
    return sl_magnitude_create(&trainer->shape, share, steps, per_layer, &trainer->allocator, &trainer->magnitude);
}

int sl_trainer_model_is_complete(const sl_trainer *trainer) {
    if (trainer->ranges && !trainer->ranges->started) return 0;
    return !trainer->magnitude || sl_magnitude_is_done(trainer->magnitude, sl_trainer_step_number(trainer));
}

/* ---------------------------------------------------------------------------------------------------------------
 * Ranges
 * ------------------------------------------------------------------------------------------------------------- */

/* Returns whether the best weights are a kept copy, not the last weights. */
static int has_kept_best(const sl_trainer *trainer) {
    return trainer->best.block && trainer->position.best_epoch;
}

/* Makes the ranges. A training from a model uses INT8 from its first step. A training from scratch begins in F32,
 * because ranges need trained inputs. */
static sl_status create_ranges(sl_trainer *trainer, const sl_train_params *params) {
    double total = (double)trainer->epochs * (double)sl_trainer_minibatches(trainer);
    SL_TRY(sl_ranges_create(params, &trainer->shape, trainer->dense_states, &trainer->allocator, &trainer->ranges));
    sl_ranges *ranges = trainer->ranges;
    if (!ranges) return SL_OK;
    ranges->first_step = params->init ? 0 : (uint64_t)(FLOAT_SHARE * total);
    uint64_t settings[2 + SL_MAX_LAYERS] = {(uint64_t)ranges->kind, ranges->first_step};
    for (size_t l = 0; l < trainer->shape.layers; l++)
        settings[2 + l] = 1 + (uint64_t)ranges->layers[l].is_int8;
    add_to_settings(trainer, settings, sizeof settings);
    return SL_OK;
}

sl_status sl_trainer_use_ranges(sl_trainer *trainer) {
    if (!trainer->ranges || !trainer->ranges->started) return SL_OK;
    return sl_net_trainer_set_fake(trainer->net, trainer->ranges->layers);
}

sl_status sl_trainer_fold(sl_trainer *trainer, sl_coded_layers *out) {
    int is_best = has_kept_best(trainer);
    return sl_ranges_fold(trainer->ranges, is_best, sl_trainer_best(trainer)->dense, out);
}

/* Chooses the tables whose rows are divided among the ranks. */
static sl_status choose_shards(sl_trainer *trainer) {
    const sl_features *features = trainer->features;
    const size_t least = trainer->on.shard;
    sl_status status = SL_OK;
    if (!trainer->on.ranks || !least || !features->table_count) return SL_OK;
    trainer->sharded = sl_mem_array(&trainer->allocator, features->table_count, 1, &status);
    for (size_t t = 0; t < features->table_count && status == SL_OK; t++)
        trainer->sharded[t] = sl_table_floats(features, t) * sizeof(float) >= least;
    return status;
}

/* Makes the sparse trainer. Sums over all ranks touch as many rows as the whole mini-batch. */
static sl_status create_sparse(sl_trainer *trainer) {
    const sl_ranks *ranks = trainer->on.ranks;
    SL_TRY(choose_shards(trainer));
    const sl_row_owner owner = {ranks ? ranks->rank : 0, sl_ranks_count(ranks), trainer->sharded};
    /* Each rank rounds its share of a mini-batch down, so another mini-batch has up to a row per rank more. */
    const size_t rows = sl_larger(trainer->batch_rows + owner.ranks - 1, trainer->minibatch_rows);
    return sl_sparse_trainer_create(trainer->features, rows, trainer->threads, &owner, &trainer->allocator,
                                    &trainer->sparse);
}

static sl_status create_distil(sl_trainer *trainer, const sl_rows *train, const sl_rows *valid,
                               const sl_train_params *params) {
    return sl_distil_create(params, train, valid, &trainer->data, trainer->minibatch_rows, &trainer->distil);
}

/* Scales the rates with the mini-batch. */
static void scale_rates(sl_trainer *trainer) {
    sl_train_ranks *on = &trainer->on;
    const uint64_t rows = trainer->data.total_train, usual = trainer->spec->minibatch_rows;
    double factor = (double)trainer->batch_rows / (double)(usual < rows ? usual : rows);
    if (on->scaling == SL_RATES_KEPT) factor = 1;
    if (on->scaling == SL_RATES_SQRT) factor = sqrt(factor);
    trainer->rate_scale *= factor;
    trainer->warm_up_from = 1 / factor;
}

static sl_status set_up_trainer(sl_trainer *trainer, const sl_rows *train, const sl_rows *valid,
                                const sl_train_params *params) {
    const sl_features *features = trainer->features;
    const sl_allocator *allocator = &trainer->allocator;
    sl_shape_of(features, &trainer->shape);
    if (trainer->shape.layers && !sl_net_has_onednn())
        return sl_fail(SL_EUNSUPPORTED, "this build has no oneDNN, which trains the deep part; build with it, or set "
                                        "\"deep\": null");
    const sl_dataset_source source = {params->lookup, params->lookup_ctx, sl_distils_alone(params), trainer->on.ranks};
    SL_TRY(sl_dataset_read(features, train, valid, &source, allocator, &trainer->data));
    size_minibatch(trainer);
    scale_rates(trainer);
    if (params->teacher) SL_TRY(sl_ranks_agree(trainer->on.ranks, create_distil(trainer, train, valid, params)));
    SL_TRY(check_rows(trainer));
    SL_TRY(sl_train_first_weights(&trainer->data, &trainer->shape, allocator, &trainer->weights));
    if (trainer->data.total_valid) SL_TRY(sl_weights_create(features, &trainer->shape, allocator, &trainer->best));
    SL_TRY(sl_minibatch_create(features, trainer->minibatch_rows, allocator, &trainer->minibatch));
    SL_TRY(sl_forgetter_init(&trainer->forgetter, features, trainer->spec->forget, allocator));
    SL_TRY(sl_embedding_usage_init(&trainer->usage, &trainer->data, trainer->on.ranks, allocator));
    SL_TRY(create_net(trainer));
    /* Layers in INT8 have operand types of their own. */
    int may_round = trainer->net && params->layers == SL_TRAIN_LAYERS_F32;
    const sl_precision_state precision = sl_precision_start(params, may_round);
    SL_TRY(sl_trainer_use_precision(trainer, &precision));
    SL_TRY(create_sparse(trainer));
    SL_TRY(alloc_floats(trainer, trainer->minibatch_rows, features->outputs, &trainer->logits));
    SL_TRY(alloc_floats(trainer, trainer->minibatch_rows, features->outputs, &trainer->logit_gradient));
    SL_TRY(alloc_floats(trainer, trainer->data.valid_count, features->outputs, &trainer->valid_logits));
    fingerprint_settings(trainer, params);
    SL_TRY(create_ranges(trainer, params));
    if (params->init) sl_trainer_set_weights(trainer, &params->init->weights);
    return SL_OK;
}

sl_status sl_trainer_create(sl_features *features, const sl_rows *train, const sl_rows *valid,
                            const sl_train_params *params, const sl_train_ranks *on, sl_trainer **out) {
    sl_allocator allocator = sl_allocator_of(params->allocator);
    void *block;
    *out = NULL;
    sl_status status = sl_mem_alloc(&allocator, sizeof(sl_trainer), &block);
    if (status != SL_OK) {
        sl_features_free(features);
        return status;
    }
    sl_trainer *trainer = block;
    trainer->allocator = allocator;
    trainer->features = features;
    trainer->spec = features->spec;
    trainer->threads = sl_thread_count(params->threads);
    trainer->epochs = features->spec->epochs;
    trainer->loops = sl_loops_get();
    trainer->rate_scale = params->rate_scale;
    if (on) trainer->on = *on;
    trainer->data.rows.allocator = allocator;
    status = sl_ranks_agree(trainer->on.ranks, set_up_trainer(trainer, train, valid, params));
    if (status == SL_OK)
        *out = trainer;
    else
        sl_trainer_free(trainer);
    return status;
}

/* Frees everything except the features. */
static void free_parts(sl_trainer *trainer) {
    const sl_allocator *allocator = &trainer->allocator;
    size_t logits = trainer->minibatch_rows * trainer->features->outputs * sizeof(float);
    size_t valid = trainer->data.valid_count * trainer->features->outputs * sizeof(float);
    sl_mem_free(allocator, trainer->logits, logits);
    sl_mem_free(allocator, trainer->logit_gradient, logits);
    sl_mem_free(allocator, trainer->valid_logits, valid);
    SL_FREE_ARRAY(allocator, trainer->reduce_room, trainer->reduce_size);
    SL_FREE_ARRAY(allocator, trainer->dense_gradient, trainer->dense_size);
    SL_FREE_ARRAY(allocator, trainer->dense_state, trainer->dense_size * trainer->dense_states);
    sl_sparse_trainer_free(trainer->sparse);
    SL_FREE_ARRAY(allocator, trainer->sharded, trainer->features->table_count);
    sl_net_trainer_free(trainer->net);
    sl_weights_free(&trainer->weights, trainer->features, &trainer->shape, allocator);
    sl_weights_free(&trainer->best, trainer->features, &trainer->shape, allocator);
    sl_minibatch_free(&trainer->minibatch, allocator);
    sl_forgetter_free(&trainer->forgetter);
    sl_distil_free(trainer->distil);
    sl_magnitude_free(trainer->magnitude);
    sl_ranges_free(trainer->ranges);
    sl_embedding_usage_free(&trainer->usage);
    sl_dataset_free(&trainer->data);
}

void sl_trainer_free(sl_trainer *trainer) {
    if (!trainer) return;
    sl_allocator allocator = trainer->allocator;
    free_parts(trainer);
    sl_features_free(trainer->features);
    SL_FREE(&allocator, trainer);
}

void sl_trainer_release(sl_trainer *trainer, sl_features **features, sl_weights *best) {
    sl_allocator allocator = trainer->allocator;
    sl_weights *taken = has_kept_best(trainer) ? &trainer->best : &trainer->weights;
    *features = trainer->features;
    *best = *taken;
    *taken = (sl_weights){0};
    free_parts(trainer);
    SL_FREE(&allocator, trainer);
}

const sl_weights *sl_trainer_best(const sl_trainer *trainer) {
    return has_kept_best(trainer) ? &trainer->best : &trainer->weights;
}

size_t sl_trainer_minibatches(const sl_trainer *trainer) {
    return (size_t)((trainer->data.total_train + trainer->batch_rows - 1) / trainer->batch_rows);
}

uint64_t sl_trainer_step_number(const sl_trainer *trainer) {
    return trainer->position.epoch * sl_trainer_minibatches(trainer) + trainer->position.minibatch;
}
