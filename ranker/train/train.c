/* The public calls of training. */
#include "ranker/train/train.h"

#include "base/clock.h"
#include "base/params.h"
#include "ranker/features/table.h"
#include "ranker/train/train_loop.h"
#include "ranker/train/warm_start.h"

#include <math.h>
#include <stdio.h>

void sl_train_params_init_sized(sl_train_params *params, size_t struct_size) {
    const sl_train_params mine = {.struct_size = sizeof mine, .temperature = 2, .soft = 0.7, .rate_scale = 1};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

sl_status sl_train_read_params(const sl_train_params *params, sl_train_params *mine) {
    sl_train_params_init(mine);
    SL_TRY(sl_params_in(mine, sizeof *mine, params, "sl_train_params_init"));
    if (mine->resume && !mine->checkpoint)
        return sl_fail(SL_EINVAL, "resume asks for a checkpoint to go on from; name one");
    SL_TRY(sl_precision_check(mine));
    SL_TRY(sl_ranges_check(mine));
    if (mine->init) SL_TRY(sl_warm_start_check_floats(mine->init));
    if (!(mine->rate_scale > 0 && isfinite(mine->rate_scale)))
        return sl_fail(SL_EINVAL, "rate_scale is %g; give a number above 0", mine->rate_scale);
    if (!mine->teacher) return SL_OK;
    /* Outside these bounds, temperature^2 or its inverse makes logits and gradients overflow floats. */
    if (!(mine->temperature >= 0.001 && mine->temperature <= 1000))
        return sl_fail(SL_EINVAL, "temperature is %g; give a number from 0.001 to 1000", mine->temperature);
    if (!(mine->soft >= 0 && mine->soft <= 1))
        return sl_fail(SL_EINVAL, "soft is %g; give a share from 0 to 1", mine->soft);
    return SL_OK;
}

static sl_status read_params(const char *spec, const sl_rows *train, const sl_train_params *params,
                             sl_train_params *mine) {
    SL_TRY(sl_train_read_params(params, mine));
    if (!train || (!spec && !mine->init)) return sl_fail(SL_EINVAL, "spec or rows is NULL");
    return SL_OK;
}

static void write_report(const sl_train_loop *loop, double read_s, sl_train_report *out) {
    const sl_trainer *trainer = loop->trainer;
    const sl_weights *best = sl_trainer_best(trainer);
    const sl_train_position *position = &trainer->position;
    const sl_features *features = trainer->features;
    sl_train_report report = {.struct_size = sizeof report,
                              .rows = (size_t)trainer->data.total_train,
                              .valid_rows = (size_t)trainer->data.total_valid,
                              .epochs = (size_t)position->epoch,
                              .best_epoch = (size_t)position->best_epoch,
                              .train_loss = position->best_train_loss,
                              .valid_loss = position->best_valid_loss,
                              .valid_auc = position->best_valid_auc,
                              .read_s = read_s,
                              .precision = trainer->precision.precision,
                              .emulated = trainer->net && sl_net_trainer_emulates(trainer->net),
                              .loss_scale = trainer->precision.loss_scale,
                              .skipped_steps = (size_t)trainer->precision.skipped};
    if (trainer->ranges) {
        report.layers = SL_TRAIN_LAYERS_INT8;
        report.ranges = trainer->ranges->kind;
    }
    if (loop->epochs_done) report.epoch_s = loop->train_s / (double)loop->epochs_done;
    if (loop->train_s > 0) report.rows_per_s = (double)loop->rows_done / loop->train_s;
    for (size_t i = 0; i < features->wide_size * features->outputs; i++)
        report.wide_nonzero += best->wide[i] != 0;
    sl_params_out(out, &report, sizeof report);
}

/* Goes on from the checkpoint if params asks for it and the file exists. Otherwise writes the first checkpoint, so a
 * bad path fails before the work. */
static sl_status resume_or_begin(sl_train_loop *loop) {
    const sl_train_params *params = loop->params;
    const sl_train_position *position = &loop->trainer->position;
    int found = 0;
    if (!loop->checkpoint) return SL_OK;
    if (params->resume) SL_TRY(sl_checkpoint_read(loop->checkpoint, loop->trainer, &found));
    if (!found) return sl_checkpoint_write(loop->checkpoint, loop->trainer);
    if (!params->log) return SL_OK;
    char line[160];
    snprintf(line, sizeof line, "going on after %llu epochs and %llu batches, from the checkpoint",
             (unsigned long long)position->epoch, (unsigned long long)position->minibatch);
    params->log(params->log_ctx, SL_LOG_INFO, line);
    return SL_OK;
}

/* Logs the precision if the caller chose one. */
static void log_precision(const sl_train_loop *loop) {
    const sl_train_params *params = loop->params;
    const sl_trainer *trainer = loop->trainer;
    char line[160];
    if (!params->log || params->precision == SL_TRAIN_DEFAULT) return;
    int emulated = trainer->net && sl_net_trainer_emulates(trainer->net);
    snprintf(line, sizeof line, "training in %s%s", sl_train_precision_name(trainer->precision.precision),
             emulated ? ", emulated: the machine or oneDNN lacks its instructions, and f32 is as fast" : "");
    params->log(params->log_ctx, SL_LOG_INFO, line);
}

static sl_status train_to_the_end(sl_train_loop *loop) {
    const char *path = loop->params->checkpoint;
    if (path) SL_TRY(sl_checkpoint_create(loop->params, loop->trainer, &loop->checkpoint));
    sl_status status = resume_or_begin(loop);
    if (status == SL_OK) log_precision(loop);
    return status == SL_OK ? sl_train_loop_run(loop) : status;
}

sl_status sl_train_to_ranker(sl_trainer *trainer, const sl_train_params *params, double read_s, sl_ranker **out,
                             sl_train_report *report) {
    sl_train_loop loop = {.trainer = trainer, .params = params};
    sl_status status = train_to_the_end(&loop);
    sl_coded_layers coded = {.block = NULL};
    sl_checkpoint_free(loop.checkpoint);
    if (status == SL_OK && trainer->ranges) status = sl_trainer_fold(trainer, &coded);
    if (status != SL_OK) {
        sl_trainer_free(trainer);
        return status;
    }
    if (report) write_report(&loop, read_s, report);
    /* Frees the training's memory before it makes the ranker. */
    sl_allocator allocator = trainer->allocator;
    sl_net_shape shape = trainer->shape;
    sl_features *features;
    sl_weights weights;
    sl_trainer_release(trainer, &features, &weights);
    if (coded.block) sl_coded_layers_decode(&coded, &shape, weights.dense);
    return sl_ranker_make(features, &weights, &coded, &allocator, out);
}

sl_status sl_train_on_ranks(const char *spec, const sl_rows *train, const sl_rows *valid, const sl_train_params *params,
                            const sl_train_ranks *on, sl_ranker **out, sl_train_report *report) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    sl_train_params mine;
    sl_features *features;
    sl_trainer *trainer;
    SL_TRY(read_params(spec, train, params, &mine));
    if (report) SL_TRY(sl_params_check_out(report, "sl_train_report"));
    if (valid) SL_TRY(sl_rows_check(valid));
    double begin = sl_now_s();
    SL_TRY(sl_train_fit(spec, train, &mine, on, &features));
    SL_TRY(sl_trainer_create(features, train, valid, &mine, on, &trainer));
    return sl_train_to_ranker(trainer, &mine, sl_now_s() - begin, out, report);
}

sl_status sl_ranker_train(const char *spec, const sl_rows *train, const sl_rows *valid, const sl_train_params *params,
                          sl_ranker **out, sl_train_report *report) {
    return sl_train_on_ranks(spec, train, valid, params, NULL, out, report);
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
    mine.init = mine.teacher = NULL;
    SL_TRY(sl_train_fit(spec, rows, &mine, NULL, &features));
    sl_allocator allocator = sl_allocator_of(mine.allocator);
    sl_shape_of(features, &shape);
    sl_status status = sl_dataset_read(features, rows, NULL,
                                       &(sl_dataset_source){mine.lookup, mine.lookup_ctx, 0, NULL}, &allocator, &data);
    if (status != SL_OK) {
        sl_features_free(features);
        return status;
    }
    status = sl_train_first_weights(&data, &shape, &allocator, &weights);
    sl_dataset_free(&data);
    if (status == SL_OK) return sl_ranker_make(features, &weights, NULL, &allocator, out);
    sl_features_free(features);
    return status;
}
