#define _GNU_SOURCE
#include "ranker/train/train_loop.h"

#include "base/clock.h"
#include "ranker/model/auc.h"
#include "ranker/model/metrics.h"
#include "ranker/net/loss.h"
#include "storage/replace.h"

#include <math.h>
#include <stdio.h>

static sl_status fail_not_finite(const sl_trainer *trainer, const char *which) {
    const char *fp16 =
        trainer->precision.precision == SL_TRAIN_FP16 ? "; fp16 holds no number above 65,504: bf16 and f32 do" : "";
    return sl_fail(SL_EVALUE,
                   "the %s loss is not finite (epoch %llu, batch %llu): lower deep.rate or wide.rate, or look for huge "
                   "values in the columns or in the weights of the rows%s",
                   which, (unsigned long long)trainer->position.epoch + 1,
                   (unsigned long long)trainer->position.minibatch + 1, fp16);
}

/* Skips the step of a mini-batch whose gradients overflow. */
static sl_status skip_step(sl_train_loop *loop) {
    const sl_trainer *trainer = loop->trainer;
    char line[160];
    SL_TRY(sl_precision_overflow(&loop->trainer->precision));
    if (!loop->params->log) return SL_OK;
    snprintf(line, sizeof line, "the gradients overflow (epoch %llu, batch %llu): step skipped, loss scale now %g",
             (unsigned long long)trainer->position.epoch + 1, (unsigned long long)trainer->position.minibatch + 1,
             trainer->precision.loss_scale);
    loop->params->log(loop->params->log_ctx, SL_LOG_INFO, line);
    return SL_OK;
}

/* Fails because a static loss scale skipped every step. */
static sl_status fail_all_skipped(const sl_trainer *trainer) {
    return sl_fail(
        SL_EVALUE,
        "every step so far was skipped, because the gradients overflow fp16 at a loss scale of %g: lower the "
        "scale, or leave it out so that it adapts",
        trainer->precision.loss_scale);
}

/* Applies the collected gradients, or skips the step. */
static sl_status step_or_skip(sl_train_loop *loop) {
    sl_trainer *trainer = loop->trainer;
    if (trainer->overflowed) return skip_step(loop);
    sl_trainer_apply(trainer);
    sl_precision_good_step(&trainer->precision);
    return SL_OK;
}

/* Returns whether a checkpoint within the epoch is due before this mini-batch. */
static int checkpoint_due(const sl_train_loop *loop) {
    size_t steps = loop->params->checkpoint_steps;
    uint64_t minibatch = loop->trainer->position.minibatch;
    return loop->checkpoint && steps && minibatch && minibatch % steps == 0;
}

/* Trains on one mini-batch. Writes a due checkpoint only after the loss, because a finite loss shows that the weights
 * are still good. */
static sl_status train_minibatch(sl_train_loop *loop) {
    sl_trainer *trainer = loop->trainer;
    double loss, weight;
    SL_TRY(sl_trainer_start_ranges(trainer));
    SL_TRY(sl_trainer_forward(trainer, &loss, &weight));
    if (!isfinite(loss)) return fail_not_finite(trainer, "training");
    if (checkpoint_due(loop)) SL_TRY(sl_checkpoint_write(loop->checkpoint, trainer));
    SL_TRY(sl_trainer_collect(trainer));
    SL_TRY(step_or_skip(loop));
    trainer->position.loss_sum += loss;
    trainer->position.weight_sum += weight;
    trainer->position.minibatch++;
    loop->rows_done += trainer->minibatch.rows.rows;
    sl_progress_step(&loop->progress, trainer->minibatch.rows.rows);
    if (sl_progress_cancelled(&loop->progress)) return sl_progress_end(&loop->progress);
    return SL_OK;
}

static sl_status train_epoch(sl_train_loop *loop) {
    sl_trainer *trainer = loop->trainer;
    size_t minibatches = sl_trainer_minibatches(trainer);
    sl_dataset_shuffle(&trainer->data, trainer->spec->seed, trainer->position.epoch);
    while (trainer->position.minibatch < minibatches)
        SL_TRY(train_minibatch(loop));
    if (trainer->precision.skipped == (trainer->position.epoch + 1) * minibatches) return fail_all_skipped(trainer);
    return SL_OK;
}

sl_status sl_train_validate(sl_trainer *trainer, sl_epoch *epoch) {
    const sl_dataset *data = &trainer->data;
    sl_loss loss = trainer->spec->loss;
    size_t outputs = trainer->features->outputs, count = data->valid_count;
    double loss_sum = 0, weight_sum = 0;
    epoch->valid_loss = epoch->valid_auc = (double)NAN;
    if (!count) return SL_OK;
    for (size_t at = 0; at < count; at += trainer->minibatch_rows) {
        size_t rows = count - at < trainer->minibatch_rows ? count - at : trainer->minibatch_rows;
        float *logits = trainer->valid_logits + at * outputs;
        SL_TRY(sl_trainer_logits(trainer, data->valid + at, rows, logits));
        const sl_loss_rows judged = {.rows = rows,
                                     .outputs = outputs,
                                     .logits = logits,
                                     .labels = trainer->minibatch.labels,
                                     .weights = trainer->minibatch.weights};
        loss_sum += sl_loss_sum(loss, &judged, 1, NULL);
        for (size_t r = 0; r < rows; r++)
            weight_sum += (double)trainer->minibatch.weights[r];
    }
    if (!isfinite(loss_sum)) return fail_not_finite(trainer, "validation");
    epoch->valid_loss = weight_sum > 0 ? loss_sum / weight_sum : 0;
    if (loss != SL_LOSS_LOGISTIC || data->unlabelled) return SL_OK;
    return sl_auc(trainer->valid_logits, data->rows.labels, data->rows.weights, data->valid, count, &trainer->allocator,
                  &epoch->valid_auc);
}

/* Keeps the weights if the epoch is the best. Without validation rows, the last epoch is the best. */
static void keep_best(sl_trainer *trainer, sl_epoch *epoch) {
    sl_train_position *position = &trainer->position;
    epoch->best = !trainer->best.block || !position->best_epoch || epoch->valid_loss < position->best_valid_loss;
    /* Before the last cut, or before INT8 begins, the weights are not the model that the caller asked for. */
    if (!sl_trainer_model_is_complete(trainer)) epoch->best = 0;
    if (!epoch->best) return;
    position->best_epoch = epoch->epoch;
    position->best_train_loss = epoch->train_loss;
    position->best_valid_loss = epoch->valid_loss;
    position->best_valid_auc = epoch->valid_auc;
    if (trainer->best.block) sl_weights_copy(&trainer->best, &trainer->weights, trainer->features, &trainer->shape);
    if (trainer->ranges) sl_ranges_keep_best(trainer->ranges);
}

static int is_training_over(const sl_trainer *trainer) {
    const sl_train_position *position = &trainer->position;
    size_t patience = trainer->spec->patience;
    if (position->epoch >= trainer->epochs) return 1;
    return patience && trainer->best.block && position->best_epoch &&
           position->epoch - position->best_epoch >= patience;
}

static void log_epoch(const sl_train_params *params, const sl_epoch *epoch) {
    char line[160];
    if (!params->log) return;
    snprintf(line, sizeof line, "epoch %zu: loss %.6g, validation %.6g, %.3g s", epoch->epoch, epoch->train_loss,
             epoch->valid_loss, epoch->seconds);
    params->log(params->log_ctx, SL_LOG_INFO, line);
}

static sl_status run_epoch(sl_train_loop *loop) {
    sl_trainer *trainer = loop->trainer;
    sl_train_position *position = &trainer->position;
    uint64_t rows_before = loop->rows_done;
    double start = sl_now_s();
    SL_TRY(train_epoch(loop));
    sl_epoch epoch = {.epoch = (size_t)position->epoch + 1,
                      .train_loss = position->weight_sum > 0 ? position->loss_sum / position->weight_sum : 0,
                      .seconds = sl_now_s() - start,
                      .rows = (size_t)(loop->rows_done - rows_before)};
    loop->train_s += epoch.seconds;
    loop->epochs_done++;
    sl_embedding_usage_fill_unused(&trainer->usage, trainer->sparse, trainer->weights.embeddings);
    SL_TRY(sl_train_validate(trainer, &epoch));
    keep_best(trainer, &epoch);
    position->epoch++;
    position->minibatch = 0;
    position->loss_sum = position->weight_sum = 0;
    if (loop->checkpoint) SL_TRY(sl_checkpoint_write(loop->checkpoint, trainer));
    log_epoch(loop->params, &epoch);
    if (loop->params->epoch) loop->params->epoch(loop->params->epoch_ctx, &epoch);
    return SL_OK;
}

sl_status sl_train_loop_run(sl_train_loop *loop) {
    const sl_trainer *trainer = loop->trainer;
    uint64_t rows = trainer->data.train_count;
    sl_progress_start(&loop->progress, loop->params->progress, loop->params->progress_ctx, trainer->epochs * rows);
    sl_progress_step(&loop->progress,
                     trainer->position.epoch * rows + trainer->position.minibatch * trainer->minibatch_rows);
    if (loop->checkpoint && !is_training_over(trainer)) SL_TRY(sl_replace_try(loop->params->checkpoint, NULL));
    while (!is_training_over(trainer))
        SL_TRY(run_epoch(loop));
    if (!sl_all_finite(trainer->weights.block, trainer->weights.block_size))
        return sl_fail(SL_EVALUE, "a weight is not finite after the last epoch: lower deep.rate or wide.rate");
    return sl_progress_end(&loop->progress);
}
