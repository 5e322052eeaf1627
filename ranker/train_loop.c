#define _GNU_SOURCE
#include "ranker/loss.h"
#include "ranker/metrics.h"
#include "ranker/train.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

double sl_now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static sl_status not_finite(const sl_trainer *trainer, const char *which) {
    return sl_fail(SL_EVALUE,
                   "the %s loss is not finite (epoch %llu, batch %llu): lower deep.rate or wide.rate, or look for huge "
                   "values in the columns",
                   which, (unsigned long long)trainer->state.epoch + 1, (unsigned long long)trainer->state.batch + 1);
}

/* True before a batch at which a checkpoint within the epoch is due. */
static int checkpoint_due(const sl_trainer *trainer) {
    size_t steps = trainer->params.checkpoint_steps;
    return trainer->params.checkpoint && steps && trainer->state.batch && trainer->state.batch % steps == 0;
}

/* One batch. Its loss tells whether the weights are still good, so that a checkpoint of them waits for it. */
static sl_status train_batch(sl_trainer *trainer) {
    double loss, weight;
    SL_TRY(sl_trainer_forward(trainer, &loss, &weight));
    if (!isfinite(loss)) return not_finite(trainer, "training");
    if (checkpoint_due(trainer)) SL_TRY(sl_checkpoint_write(trainer));
    SL_TRY(sl_trainer_update(trainer));
    trainer->state.loss_sum += loss;
    trainer->state.weight_sum += weight;
    trainer->state.batch++;
    trainer->rows_done += trainer->batch.rows.rows;
    sl_progress_step(&trainer->progress, trainer->batch.rows.rows);
    if (sl_progress_cancelled(&trainer->progress)) return sl_progress_end(&trainer->progress);
    return SL_OK;
}

static sl_status train_epoch(sl_trainer *trainer) {
    size_t batches = sl_trainer_batches(trainer);
    sl_dataset_shuffle(&trainer->data, trainer->spec->seed, trainer->state.epoch);
    while (trainer->state.batch < batches)
        SL_TRY(train_batch(trainer));
    return SL_OK;
}

/* Mean loss of the validation rows, by their weights, and under logistic loss their AUC. */
static sl_status validate(sl_trainer *trainer, sl_epoch *epoch) {
    const sl_dataset *data = &trainer->data;
    sl_loss loss = trainer->spec->loss;
    size_t outputs = trainer->features->outputs, count = data->valid_count;
    double loss_sum = 0, weight_sum = 0;
    epoch->valid_loss = epoch->valid_auc = (double)NAN;
    if (!count) return SL_OK;
    for (size_t at = 0; at < count; at += trainer->batch_rows) {
        size_t rows = count - at < trainer->batch_rows ? count - at : trainer->batch_rows;
        float *logits = trainer->valid_logits + at * outputs;
        SL_TRY(sl_trainer_logits(trainer, data->valid + at, rows, logits));
        loss_sum += sl_loss_sum(loss, outputs, logits, trainer->batch.labels, trainer->batch.weights, rows, 1, NULL);
        for (size_t r = 0; r < rows; r++)
            weight_sum += (double)trainer->batch.weights[r];
    }
    if (!isfinite(loss_sum)) return not_finite(trainer, "validation");
    epoch->valid_loss = weight_sum > 0 ? loss_sum / weight_sum : 0;
    if (loss != SL_LOSS_LOGISTIC) return SL_OK;
    return sl_auc(trainer->valid_logits, data->rows.labels, data->rows.weights, data->valid, count, &trainer->allocator,
                  &epoch->valid_auc);
}

/* Without validation rows the last epoch is the best. */
static void keep_best(sl_trainer *trainer, sl_epoch *epoch) {
    sl_train_state *state = &trainer->state;
    epoch->best = !trainer->best.block || !state->best_epoch || epoch->valid_loss < state->best_valid_loss;
    if (!epoch->best) return;
    state->best_epoch = epoch->epoch;
    state->best_train_loss = epoch->train_loss;
    state->best_valid_loss = epoch->valid_loss;
    state->best_valid_auc = epoch->valid_auc;
    if (trainer->best.block) sl_weights_copy(&trainer->best, &trainer->weights, trainer->features, &trainer->shape);
}

static int finished(const sl_trainer *trainer) {
    const sl_train_state *state = &trainer->state;
    size_t patience = trainer->spec->patience;
    if (state->epoch >= trainer->epochs) return 1;
    return patience && trainer->best.block && state->best_epoch && state->epoch - state->best_epoch >= patience;
}

static void log_epoch(const sl_trainer *trainer, const sl_epoch *epoch) {
    char line[160];
    if (!trainer->params.log) return;
    snprintf(line, sizeof line, "epoch %zu: loss %.6g, validation %.6g, %.3g s", epoch->epoch, epoch->train_loss,
             epoch->valid_loss, epoch->seconds);
    trainer->params.log(trainer->params.log_ctx, SL_LOG_INFO, line);
}

static sl_status run_epoch(sl_trainer *trainer) {
    sl_train_state *state = &trainer->state;
    uint64_t rows_before = trainer->rows_done;
    double start = sl_now_s();
    SL_TRY(train_epoch(trainer));
    sl_epoch epoch = {.epoch = (size_t)state->epoch + 1,
                      .train_loss = state->weight_sum > 0 ? state->loss_sum / state->weight_sum : 0,
                      .seconds = sl_now_s() - start,
                      .rows = (size_t)(trainer->rows_done - rows_before)};
    trainer->train_s += epoch.seconds;
    trainer->epochs_done++;
    sl_usage_fill(&trainer->usage, trainer->sparse, trainer->weights.embeddings);
    SL_TRY(validate(trainer, &epoch));
    keep_best(trainer, &epoch);
    state->epoch++;
    state->batch = 0;
    state->loss_sum = state->weight_sum = 0;
    SL_TRY(sl_checkpoint_write(trainer));
    log_epoch(trainer, &epoch);
    if (trainer->params.epoch) trainer->params.epoch(trainer->params.epoch_ctx, &epoch);
    return SL_OK;
}

sl_status sl_trainer_run(sl_trainer *trainer) {
    uint64_t total = (uint64_t)trainer->epochs * trainer->data.train_count;
    sl_progress_start(&trainer->progress, trainer->params.progress, trainer->params.progress_ctx, total);
    sl_progress_step(&trainer->progress,
                     trainer->state.epoch * trainer->data.train_count + trainer->state.batch * trainer->batch_rows);
    while (!finished(trainer))
        SL_TRY(run_epoch(trainer));
    if (!sl_all_finite(trainer->weights.block, trainer->weights.block_size))
        return sl_fail(SL_EVALUE, "a weight is not finite after the last epoch: lower deep.rate or wide.rate");
    return sl_progress_end(&trainer->progress);
}
