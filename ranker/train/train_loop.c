#define _GNU_SOURCE
#include "ranker/train/train_loop.h"

#include "base/clock.h"
#include "ranker/model/auc.h"
#include "ranker/model/metrics.h"
#include "ranker/net/loss.h"
#include "ranker/train/table_shards.h"
#include "ranker/train/train_reduce.h"
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
    if (trainer->overflowed) return sl_ranks_agree(trainer->on.ranks, skip_step(loop));
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

/* Fails if the loss is not finite. Several ranks must agree on that, so they check it with the gradients, unless it is
 * needed `now`. */
static sl_status check_loss(const sl_trainer *trainer, int now) {
    if (!now) return SL_OK;
    return sl_ranks_agree(trainer->on.ranks, trainer->not_finite ? fail_not_finite(trainer, "training") : SL_OK);
}

/* Ends the training if it was asked to. Of several ranks, each learns it with the gradients of a step. */
static sl_status end_if_cancelled(sl_train_loop *loop) {
    if (!loop->trainer->on.ranks) {
        if (!sl_progress_cancelled(&loop->progress)) return SL_OK;
    } else {
        if (!loop->trainer->cancelled) return SL_OK;
        loop->progress.cancelled = 1;
    }
    return sl_ranks_agree(loop->trainer->on.ranks, sl_progress_end(&loop->progress));
}

/* Trains on one mini-batch. Writes a due checkpoint only after the loss, because a finite loss shows that the weights
 * are still good. */
static sl_status train_minibatch(sl_train_loop *loop) {
    sl_trainer *trainer = loop->trainer;
    SL_TRY(sl_trainer_start_ranges(trainer));
    SL_TRY(sl_trainer_forward(trainer));
    SL_TRY(check_loss(trainer, !trainer->on.ranks || checkpoint_due(loop)));
    if (checkpoint_due(loop)) SL_TRY(sl_checkpoint_write(loop->checkpoint, trainer));
    trainer->cancelled = sl_progress_cancelled(&loop->progress);
    SL_TRY(sl_trainer_collect(trainer));
    /* The ranks know this of each other, and fail together. */
    if (trainer->not_finite) return sl_ranks_agree(trainer->on.ranks, fail_not_finite(trainer, "training"));
    SL_TRY(step_or_skip(loop));
    trainer->position.loss_sum += trainer->loss_sum;
    trainer->position.weight_sum += trainer->weight_sum;
    trainer->position.minibatch++;
    loop->rows_done += trainer->part.total;
    sl_progress_step(&loop->progress, trainer->part.total);
    return end_if_cancelled(loop);
}

static sl_status train_epoch(sl_train_loop *loop) {
    sl_trainer *trainer = loop->trainer;
    size_t minibatches = sl_trainer_minibatches(trainer);
    sl_dataset_shuffle(&trainer->data, trainer->spec->seed, trainer->position.epoch);
    while (trainer->position.minibatch < minibatches)
        SL_TRY(train_minibatch(loop));
    if (trainer->precision.skipped != (trainer->position.epoch + 1) * minibatches) return SL_OK;
    return sl_ranks_agree(trainer->on.ranks, fail_all_skipped(trainer));
}

/* A validation row, as the ranks hand it on. */
typedef struct judged_row {
    float logit, label, weight;
} judged_row;

/* Computes the AUC of the validation rows of all ranks, in the order of ranks. */
static sl_status auc_of(const sl_allocator *allocator, const judged_row *rows, size_t count, double *auc) {
    sl_status status = SL_OK;
    float *logits = sl_mem_array(allocator, 3 * count, sizeof *logits, &status);
    uint32_t *numbers = sl_mem_array(allocator, count, sizeof *numbers, &status);
    for (size_t i = 0; i < count && status == SL_OK; i++) {
        logits[i] = rows[i].logit;
        logits[count + i] = rows[i].label;
        logits[2 * count + i] = rows[i].weight;
        numbers[i] = (uint32_t)i;
    }
    if (status == SL_OK) status = sl_auc(logits, logits + count, logits + 2 * count, numbers, count, allocator, auc);
    SL_FREE_ARRAY(allocator, logits, 3 * count);
    SL_FREE_ARRAY(allocator, numbers, count);
    return status;
}

/* Measures the AUC of the validation rows of all ranks. */
static sl_status measure_auc(const sl_trainer *trainer, double *auc) {
    const sl_dataset *data = &trainer->data;
    const sl_ranks *ranks = trainer->on.ranks;
    const sl_allocator *allocator = &trainer->allocator;
    const size_t count = data->valid_count;
    sl_parts parts = {.data = NULL};
    sl_status status = SL_OK;
    judged_row *mine = sl_mem_array(allocator, count, sizeof *mine, &status);
    for (size_t i = 0; i < count && status == SL_OK; i++) {
        const uint32_t row = data->valid[i];
        mine[i] = (judged_row){trainer->valid_logits[i], data->rows.labels[row],
                               data->rows.weights ? data->rows.weights[row] : 1};
    }
    status = ranks->agree(ranks->ctx, status);
    if (status == SL_OK) status = ranks->gather(ranks->ctx, mine, count * sizeof *mine, allocator, &parts);
    if (status == SL_OK)
        status = auc_of(allocator, (const judged_row *)(const void *)parts.data, (size_t)data->total_valid, auc);
    SL_FREE_ARRAY(allocator, mine, count);
    sl_parts_free(&parts);
    return ranks->agree(ranks->ctx, status);
}

sl_status sl_train_validate(sl_trainer *trainer, sl_epoch *epoch) {
    const sl_dataset *data = &trainer->data;
    sl_loss loss = trainer->spec->loss;
    size_t outputs = trainer->features->outputs, count = data->valid_count;
    double loss_sum = 0, weight_sum = 0;
    epoch->valid_loss = epoch->valid_auc = (double)NAN;
    if (!data->total_valid) return SL_OK;
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
    double sums[2] = {loss_sum, weight_sum};
    SL_TRY(sl_ranks_sum_doubles(trainer->on.ranks, sums, 2));
    if (!isfinite(sums[0])) return sl_ranks_agree(trainer->on.ranks, fail_not_finite(trainer, "validation"));
    epoch->valid_loss = sums[1] > 0 ? sums[0] / sums[1] : 0;
    if (loss != SL_LOSS_LOGISTIC || data->unlabelled) return SL_OK;
    if (trainer->on.ranks) return measure_auc(trainer, &epoch->valid_auc);
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
    SL_TRY(sl_shards_sync(trainer));
    sl_embedding_usage_fill_unused(&trainer->usage, trainer->sparse, trainer->weights.embeddings);
    SL_TRY(sl_shards_sync(trainer));
    SL_TRY(sl_train_validate(trainer, &epoch));
    SL_TRY(sl_trainer_check_same(trainer));
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
    const uint64_t rows = trainer->data.total_train;
    const sl_ranks *ranks = trainer->on.ranks;
    const int writes = loop->checkpoint && (!ranks || ranks->rank == 0);
    sl_progress_start(&loop->progress, loop->params->progress, loop->params->progress_ctx, trainer->epochs * rows);
    sl_progress_step(&loop->progress,
                     trainer->position.epoch * rows + trainer->position.minibatch * trainer->batch_rows);
    if (!is_training_over(trainer))
        SL_TRY(sl_ranks_agree(ranks, writes ? sl_replace_try(loop->params->checkpoint, NULL) : SL_OK));
    while (!is_training_over(trainer))
        SL_TRY(run_epoch(loop));
    sl_status status = SL_OK;
    if (!sl_all_finite(trainer->weights.block, trainer->weights.block_size))
        status = sl_fail(SL_EVALUE, "a weight is not finite after the last epoch: lower deep.rate or wide.rate");
    if (status == SL_OK) status = sl_progress_end(&loop->progress);
    return sl_ranks_agree(ranks, status);
}
