#include "ranker/train.h"

#include "base/params.h"
#include "ranker/table.h"

#include <math.h>
#include <stdio.h>

void sl_train_params_init_sized(sl_train_params *params, size_t struct_size) {
    const sl_train_params mine = {.struct_size = sizeof mine};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Features and first weights
 * ------------------------------------------------------------------------------------------------------------- */

sl_status sl_train_fit(const char *text, const sl_rows *train, const sl_train_params *params, sl_features **out) {
    sl_allocator allocator = sl_allocator_of(params->allocator);
    sl_spec *spec;
    *out = NULL;
    SL_TRY(sl_rows_check(train));
    SL_TRY(sl_spec_read(text, &allocator, &spec));
    if (params->epochs) spec->epochs = params->epochs;
    if (params->seed) spec->seed = params->seed;
    sl_status status = train->rewind(train->ctx);
    if (status != SL_OK) {
        sl_spec_free(spec);
        return status;
    }
    return sl_features_fit(spec, train, params->lookup, params->lookup_ctx, out);
}

/* The bias begins where a model that knows nothing else would put it: at the mean of a value, at the logit of a rate,
 * at the logarithms of the classes' shares. A kind of label that never occurs counts as half a row. */
static void start_bias(const sl_dataset *data, sl_weights *weights) {
    const sl_features *features = data->features;
    double least = 0.5 / (double)data->train_count, shares[SL_MAX_CLASSES];
    if (features->spec->loss == SL_LOSS_MULTICLASS) {
        sl_dataset_class_shares(data, shares);
        for (size_t o = 0; o < features->outputs; o++)
            weights->bias[o] = (float)log(fmax(shares[o], least));
        return;
    }
    double mean = sl_dataset_label_mean(data);
    if (features->spec->loss == SL_LOSS_LOGISTIC) {
        double rate = fmin(fmax(mean, least), 1 - least);
        mean = log(rate / (1 - rate));
    }
    weights->bias[0] = (float)mean;
}

static sl_status first_weights(const sl_dataset *data, const sl_net_shape *shape, const sl_allocator *allocator,
                               sl_weights *out) {
    SL_TRY(sl_weights_create(data->features, shape, allocator, out));
    sl_weights_initialise(out, data->features, shape, data->features->spec->seed);
    start_bias(data, out);
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The trainer
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status floats(const sl_trainer *trainer, size_t rows, size_t columns, float **out) {
    size_t count, bytes;
    void *block;
    if (!sl_mul(rows, columns, &count) || !sl_mul(count, sizeof **out, &bytes))
        return sl_fail(SL_ENOMEM, "%zu times %zu floats do not fit", rows, columns);
    SL_TRY(sl_mem_alloc(&trainer->allocator, bytes, &block));
    *out = block;
    return SL_OK;
}

static sl_status create_net(sl_trainer *trainer) {
    const sl_spec *spec = trainer->spec;
    if (!trainer->shape.layers) return SL_OK;
    trainer->dense_size = sl_net_size(&trainer->shape);
    trainer->dense_states = spec->optimizer == SL_ADAM ? 2 : 1;
    SL_TRY(sl_net_trainer_create(&trainer->shape, trainer->batch_rows, trainer->threads, spec->dropout,
                                 &trainer->allocator, &trainer->net));
    SL_TRY(floats(trainer, trainer->dense_size, 1, &trainer->dense_gradient));
    return floats(trainer, trainer->dense_size, trainer->dense_states, &trainer->dense_state);
}

/* A batch larger than the rows is all of them. */
static void size_batch(sl_trainer *trainer) {
    size_t most =
        trainer->data.train_count > trainer->data.valid_count ? trainer->data.train_count : trainer->data.valid_count;
    trainer->batch_rows = trainer->spec->batch < most ? trainer->spec->batch : most;
}

/* There must be something to learn: more than a row, and of classes more than one. */
static sl_status check_rows(const sl_trainer *trainer) {
    const sl_features *features = trainer->features;
    const sl_dataset *data = &trainer->data;
    float label;
    if (data->train_count < 2)
        return sl_fail(SL_EINVAL, "1 row is left to train on, of %zu; give more rows", data->rows.rows);
    if (features->spec->loss == SL_LOSS_SQUARED || !sl_dataset_has_one_label(data, &label)) return SL_OK;
    if (features->spec->loss == SL_LOSS_MULTICLASS)
        return sl_fail(SL_EVALUE,
                       "all %zu rows to train on are of class '%s', which leaves nothing to tell apart; give rows of "
                       "other classes too",
                       data->train_count, features->classes[(size_t)label]);
    return sl_fail(SL_EVALUE,
                   "all %zu rows to train on have the label %g, which leaves nothing to tell apart; give rows of both "
                   "labels, or look at the spec's \"positive\" or \"at_least\"",
                   data->train_count, (double)label);
}

static sl_status set_up(sl_trainer *trainer, const sl_rows *train, const sl_rows *valid) {
    const sl_features *features = trainer->features;
    const sl_train_params *params = &trainer->params;
    const sl_allocator *allocator = &trainer->allocator;
    sl_shape_of(features, &trainer->shape);
    if (trainer->shape.layers && !sl_net_has_onednn())
        return sl_fail(SL_EUNSUPPORTED, "this build has no oneDNN, which trains the deep part; build with it, or set "
                                        "\"deep\": null");
    SL_TRY(sl_dataset_read(features, train, valid, params->lookup, params->lookup_ctx, allocator, &trainer->data));
    SL_TRY(check_rows(trainer));
    size_batch(trainer);
    SL_TRY(first_weights(&trainer->data, &trainer->shape, allocator, &trainer->weights));
    if (trainer->data.valid_count) SL_TRY(sl_weights_create(features, &trainer->shape, allocator, &trainer->best));
    SL_TRY(sl_minibatch_create(features, trainer->batch_rows, allocator, &trainer->batch));
    SL_TRY(sl_forgetter_init(&trainer->forgetter, features, trainer->spec->forget, allocator));
    SL_TRY(sl_usage_init(&trainer->usage, &trainer->data, allocator));
    SL_TRY(create_net(trainer));
    SL_TRY(sl_sparse_trainer_create(features, trainer->batch_rows, trainer->threads, allocator, &trainer->sparse));
    SL_TRY(floats(trainer, trainer->batch_rows, features->outputs, &trainer->logits));
    SL_TRY(floats(trainer, trainer->batch_rows, features->outputs, &trainer->logit_gradient));
    SL_TRY(floats(trainer, trainer->data.valid_count, features->outputs, &trainer->valid_logits));
    return sl_checkpoint_prepare(trainer);
}

sl_status sl_trainer_create(sl_features *features, const sl_rows *train, const sl_rows *valid,
                            const sl_train_params *params, sl_trainer **out) {
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
    trainer->params = *params;
    trainer->features = features;
    trainer->spec = features->spec;
    trainer->threads = sl_thread_count(params->threads);
    trainer->epochs = features->spec->epochs;
    trainer->loops = sl_loops_get();
    trainer->data.rows.allocator = allocator;
    status = set_up(trainer, train, valid);
    if (status == SL_OK)
        *out = trainer;
    else
        sl_trainer_free(trainer);
    return status;
}

void sl_trainer_free(sl_trainer *trainer) {
    if (!trainer) return;
    const sl_allocator *allocator = &trainer->allocator;
    size_t logits = trainer->batch_rows * trainer->features->outputs * sizeof(float);
    size_t valid = trainer->data.valid_count * trainer->features->outputs * sizeof(float);
    sl_checkpoint_release(trainer);
    sl_mem_free(allocator, trainer->logits, logits);
    sl_mem_free(allocator, trainer->logit_gradient, logits);
    sl_mem_free(allocator, trainer->valid_logits, valid);
    sl_mem_free(allocator, trainer->dense_gradient, trainer->dense_size * sizeof(float));
    sl_mem_free(allocator, trainer->dense_state, trainer->dense_size * trainer->dense_states * sizeof(float));
    sl_sparse_trainer_free(trainer->sparse);
    sl_net_trainer_free(trainer->net);
    sl_weights_free(&trainer->weights, trainer->features, &trainer->shape, allocator);
    sl_weights_free(&trainer->best, trainer->features, &trainer->shape, allocator);
    sl_minibatch_free(&trainer->batch, allocator);
    sl_forgetter_free(&trainer->forgetter);
    sl_usage_free(&trainer->usage);
    sl_dataset_free(&trainer->data);
    if (!trainer->gave_features) sl_features_free(trainer->features);
    sl_allocator mine = trainer->allocator;
    sl_mem_free(&mine, trainer, sizeof *trainer);
}

sl_weights *sl_trainer_best(sl_trainer *trainer) {
    return trainer->best.block && trainer->state.best_epoch ? &trainer->best : &trainer->weights;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The public calls
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status read_params(const char *spec, const sl_rows *train, const sl_train_params *params,
                             sl_train_params *mine) {
    if (!spec || !train) return sl_fail(SL_EINVAL, "spec or rows is NULL");
    sl_train_params_init(mine);
    SL_TRY(sl_params_in(mine, sizeof *mine, params, "sl_train_params_init"));
    if (mine->resume && !mine->checkpoint)
        return sl_fail(SL_EINVAL, "resume asks for a checkpoint to go on from; name one");
    return SL_OK;
}

static void write_report(sl_trainer *trainer, double read_s, sl_train_report *out) {
    const sl_weights *best = sl_trainer_best(trainer);
    const sl_train_state *state = &trainer->state;
    const sl_features *features = trainer->features;
    sl_train_report report = {.struct_size = sizeof report,
                              .rows = trainer->data.train_count,
                              .valid_rows = trainer->data.valid_count,
                              .epochs = (size_t)state->epoch,
                              .best_epoch = (size_t)state->best_epoch,
                              .train_loss = state->best_train_loss,
                              .valid_loss = state->best_valid_loss,
                              .valid_auc = state->best_valid_auc,
                              .read_s = read_s};
    if (trainer->epochs_done) report.epoch_s = trainer->train_s / (double)trainer->epochs_done;
    if (trainer->train_s > 0) report.rows_per_s = (double)trainer->rows_done / trainer->train_s;
    for (size_t i = 0; i < features->wide_size * features->outputs; i++)
        report.wide_nonzero += best->wide[i] != 0;
    sl_params_out(out, &report, sizeof report);
}

/* From the checkpoint where one is asked for and there, else from the beginning, of which a checkpoint is written at
 * once: a file that cannot be written is told before the work. */
static sl_status start(sl_trainer *trainer) {
    int found = 0;
    if (trainer->params.resume) SL_TRY(sl_checkpoint_read(trainer, &found));
    if (!found) return sl_checkpoint_write(trainer);
    if (!trainer->params.log) return SL_OK;
    char line[160];
    snprintf(line, sizeof line, "going on after %llu epochs and %llu batches, from the checkpoint",
             (unsigned long long)trainer->state.epoch, (unsigned long long)trainer->state.batch);
    trainer->params.log(trainer->params.log_ctx, SL_LOG_INFO, line);
    return SL_OK;
}

/* The ranker takes over features and weights; what else the training held goes first, to leave it the memory. */
static sl_status finish(sl_trainer *trainer, sl_ranker **out) {
    sl_allocator allocator = trainer->allocator;
    sl_features *features = trainer->features;
    sl_weights *best = sl_trainer_best(trainer), weights = *best;
    *best = (sl_weights){0};
    trainer->gave_features = 1;
    sl_trainer_free(trainer);
    return sl_ranker_make(features, &weights, &allocator, out);
}

sl_status sl_ranker_train(const char *spec, const sl_rows *train, const sl_rows *valid, const sl_train_params *params,
                          sl_ranker **out, sl_train_report *report) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    sl_train_params mine;
    sl_features *features;
    sl_trainer *trainer;
    SL_TRY(read_params(spec, train, params, &mine));
    if (report) SL_TRY(sl_params_check_out(report, "sl_train_report"));
    if (valid) SL_TRY(sl_rows_check(valid));
    double begin = sl_now_s();
    SL_TRY(sl_train_fit(spec, train, &mine, &features));
    SL_TRY(sl_trainer_create(features, train, valid, &mine, &trainer));
    double read_s = sl_now_s() - begin;
    sl_status status = start(trainer);
    if (status == SL_OK) status = sl_trainer_run(trainer);
    if (status != SL_OK) {
        sl_trainer_free(trainer);
        return status;
    }
    if (report) write_report(trainer, read_s, report);
    return finish(trainer, out);
}

sl_status sl_ranker_create(const char *spec, const sl_rows *rows, const sl_train_params *params, sl_ranker **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    sl_train_params mine;
    sl_features *features;
    sl_net_shape shape;
    sl_weights weights;
    sl_dataset data;
    SL_TRY(read_params(spec, rows, params, &mine));
    SL_TRY(sl_train_fit(spec, rows, &mine, &features));
    sl_allocator allocator = sl_allocator_of(mine.allocator);
    sl_shape_of(features, &shape);
    sl_status status = sl_dataset_read(features, rows, NULL, mine.lookup, mine.lookup_ctx, &allocator, &data);
    if (status != SL_OK) {
        sl_features_free(features);
        return status;
    }
    status = first_weights(&data, &shape, &allocator, &weights);
    sl_dataset_free(&data);
    if (status == SL_OK) return sl_ranker_make(features, &weights, &allocator, out);
    sl_features_free(features);
    return status;
}
