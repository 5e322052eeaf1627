#include "cli/ranker/training.h"

#include "cli/common/output.h"
#include "cli/common/report.h"
#include "cli/common/save_handle.h"
#include "cli/common/system.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void print_epoch(void *ctx, const sl_epoch *epoch) {
    const progress *progress = ctx;
    if (!progress->shows) return;
    progress_clear();
    fprintf(stderr, "epoch %zu: loss %.5f", epoch->epoch, epoch->train_loss);
    if (isfinite(epoch->valid_loss)) fprintf(stderr, ", validation loss %.5f", epoch->valid_loss);
    if (isfinite(epoch->valid_auc)) fprintf(stderr, ", AUC %.5f", epoch->valid_auc);
    fprintf(stderr, ", %.0f rows/s%s\n", epoch->seconds > 0 ? (double)epoch->rows / epoch->seconds : 0,
            epoch->best ? ", best so far" : "");
}

int train_options_check(const train_options *options) {
    if (!options->checkpoint && (options->resume || options->checkpoint_steps))
        return report_usage("--%s needs --checkpoint FILE", options->resume ? "resume" : "checkpoint-steps");
    if (options->loss_scale >= 0 && options->precision + SL_TRAIN_F32 != SL_TRAIN_FP16)
        return report_usage("--loss-scale needs --precision fp16");
    int usage = training_options_check(&options->training);
    return usage == EXIT_DONE ? layer_options_check(&options->int8) : usage;
}

/* ---- Inputs ---- */

int train_check_outputs(const train_state *state) {
    const train_options *options = state->options;
    const char *named[] = {state->spec_path, state->data_path, options->valid,
                           options->index,   options->init,    options->training.teacher};
    return check_trained(options->output, options->checkpoint, named, sizeof named / sizeof *named);
}

int train_open(train_state *state) {
    const train_options *options = state->options;
    int status = kept_read(options->int8.keep, &state->kept);
    if (status == EXIT_DONE) {
        state->spec = read_text(state->spec_path);
        status = state->spec ? EXIT_DONE : EXIT_FAILED;
    }
    if (status == EXIT_DONE) status = lookup_open(&state->lookup, options->index);
    if (status == EXIT_DONE) status = open_optional(options->init, &state->init);
    if (status == EXIT_DONE) status = open_optional(options->training.teacher, &state->teacher);
    return status;
}

void train_close(train_state *state) {
    sl_ranker_free(state->ranker);
    sl_ranker_free(state->init);
    sl_ranker_free(state->teacher);
    lookup_close(&state->lookup);
    kept_free(&state->kept);
    free(state->spec);
}

/* ---- The training ---- */

void train_begin(train_state *state, sl_train_params *params) {
    const train_options *options = state->options;
    sl_train_params_init(params);
    params->threads = options->threads;
    params->checkpoint = options->checkpoint;
    params->checkpoint_steps = options->checkpoint_steps;
    params->resume = options->resume;
    params->epochs = options->epochs;
    params->seed = options->seed;
    if (options->precision >= 0) params->precision = (sl_train_precision)(SL_TRAIN_F32 + options->precision);
    if (options->loss_scale >= 0) params->loss_scale = options->loss_scale;
    params->init = state->init;
    set_training(&options->training, state->teacher, params);
    set_layers(&options->int8, &state->kept, params);
    params->lookup = lookup_callback(&state->lookup, &params->lookup_ctx);
    params->epoch = print_epoch;
    params->epoch_ctx = &state->progress;
    params->log = report_log(&params->log_ctx);
    params->progress = progress_step;
    params->progress_ctx = &state->progress;
    if (options->checkpoint && stat(options->checkpoint, &state->before) != 0) state->before.st_ino = 0;
    state->report = (sl_train_report){.struct_size = sizeof state->report};
    progress_begin(&state->progress, "training", "rows", 0, options->progress);
}

void train_end(train_state *state, sl_status status) {
    /* Early stopping leaves out announced rows. */
    if (status == SL_OK) state->progress.total = state->report.rows * state->report.epochs;
    progress_end(&state->progress, status == SL_OK);
}

int train_left_checkpoint(const train_state *state) {
    const char *checkpoint = state->options->checkpoint;
    struct stat now;
    return checkpoint && stat(checkpoint, &now) == 0 && (state->options->resume || now.st_ino != state->before.st_ino);
}

int train_report_interrupted(const train_state *state) {
    const char *checkpoint = state->options->checkpoint;
    if (!train_left_checkpoint(state)) return report_interrupted();
    return report_failure("interrupted; %s holds how far the training was: go on with --checkpoint %s --resume",
                          checkpoint, checkpoint);
}

int train_save(train_state *state) {
    return save_handle(save_ranker, state->ranker, state->options->output, state->options->progress, &state->save_s);
}

/* ---- The report ---- */

static void print_json(const train_state *state, const sl_ranker_info *info, const sl_system *system,
                       train_more_fn more, const void *ctx) {
    const sl_train_report *report = &state->report;
    json json;
    json_begin(&json, stdout);
    json_real(&json, "auc", report->valid_auc);
    json_real(&json, "logloss", info->loss == SL_LOSS_SQUARED ? NAN : report->valid_loss);
    json_real(&json, "train_loss", report->train_loss);
    json_real(&json, "valid_loss", report->valid_loss);
    json_count(&json, "epochs", report->epochs);
    json_count(&json, "best_epoch", report->best_epoch);
    json_real(&json, "epoch_s", report->epoch_s);
    json_real(&json, "rows_per_s", report->rows_per_s);
    json_real(&json, "read_s", report->read_s);
    json_real(&json, "save_s", state->save_s);
    json_count(&json, "rows", report->rows);
    json_count(&json, "valid_rows", report->valid_rows);
    json_count(&json, "parameters", info->parameters);
    json_count(&json, "bytes", info->bytes);
    json_count(&json, "multiply_adds", info->multiply_adds);
    json_count(&json, "wide_nonzero", report->wide_nonzero);
    json_text(&json, "layers", report->layers == SL_TRAIN_LAYERS_INT8 ? "int8" : "f32");
    if (report->layers == SL_TRAIN_LAYERS_INT8) json_text(&json, "ranges", range_names[report->ranges]);
    json_text(&json, "precision", sl_train_precision_name(report->precision));
    json_flag(&json, "emulated", report->emulated);
    json_real(&json, "loss_scale", report->precision == SL_TRAIN_FP16 ? report->loss_scale : NAN);
    json_count(&json, "skipped_steps", report->skipped_steps);
    json_count(&json, "threads", thread_count(state->options->threads));
    json_text(&json, "isa", sl_isa_name(system->isa));
    json_text(&json, "output", state->options->output);
    if (more) more(&json, ctx);
    json_end(&json);
}

static void print_text(const train_state *state, const sl_ranker_info *info) {
    const sl_train_report *report = &state->report;
    printf("%s: %zu parameters, trained on %zu rows, %zu epochs; of epoch %zu\n", state->options->output,
           info->parameters, report->rows, report->epochs, report->best_epoch);
    printf("loss %.5f", report->train_loss);
    if (isfinite(report->valid_loss))
        printf("; of the %zu validation rows %.5f", report->valid_rows, report->valid_loss);
    if (isfinite(report->valid_auc)) printf(", AUC %.5f", report->valid_auc);
    if (report->layers == SL_TRAIN_LAYERS_INT8) printf("; layers in INT8, ranges %s", range_names[report->ranges]);
    printf("\n%.3g s an epoch, %.0f rows/s on %zu threads; %zu weights of the wide part are not zero\n",
           report->epoch_s, report->rows_per_s, thread_count(state->options->threads), report->wide_nonzero);
}

/* Prints the precision if the user asked for one, or a checkpoint brought one. */
static void print_precision(const train_state *state) {
    const sl_train_report *report = &state->report;
    if (state->options->precision < 0 && report->precision == SL_TRAIN_F32) return;
    printf("precision %s%s", sl_train_precision_name(report->precision),
           report->emulated ? ", emulated: this machine lacks its instructions" : "");
    if (report->precision == SL_TRAIN_FP16)
        printf("; loss scale %g at the end, %zu steps skipped", report->loss_scale, report->skipped_steps);
    putchar('\n');
}

int train_print(const train_state *state, train_more_fn more, const void *ctx) {
    sl_ranker_info info = {.struct_size = sizeof info};
    sl_system system = {.struct_size = sizeof system};
    sl_status status = sl_ranker_get_info(state->ranker, &info);
    if (status == SL_OK) status = sl_system_query(&system);
    if (status != SL_OK) return report_status(state->options->output, status);
    if (state->options->json) {
        print_json(state, &info, &system, more, ctx);
    } else {
        print_text(state, &info);
        print_precision(state);
        if (more) more(NULL, ctx);
    }
    return report_stdout();
}

const option train_table[] = {
    {'o', "output", OPTION_TEXT, "MODEL", 1, offsetof(train_options, output),
     "The model file. The file appears whole or not at all; a file of that name stays as it is until then."},
    {0, "valid", OPTION_TEXT, "CSV", 0, offsetof(train_options, valid),
     "Rows to validate the model with after each epoch. Without them the share that the spec names is held out of "
     "DATA.csv."},
    {0, "epochs", OPTION_COUNT, "N", 0, offsetof(train_options, epochs),
     "Epochs at most, in place of the spec's; 0 (default) leaves the spec's."},
    {0, "seed", OPTION_COUNT, "N", 0, offsetof(train_options, seed),
     "Seed of the first weights, the order of rows, dropout and forgetting, in place of the spec's; 0 (default) leaves "
     "the spec's."},
    OPTION_THREADS(train_options,
                   "Threads to train with; 0 (default) takes as many as OMP_NUM_THREADS or the CPUs of the "
                   "process give."),
    {0, "init", OPTION_TEXT, "MODEL", 0, offsetof(train_options, init),
     "Begin with this model's weights and with its features as they were fitted. SPEC.json has the same label, "
     "features "
     "and layers; the rest may differ."},
    OPTIONS_TRAINING(train_options, training),
    {0, "layers", OPTION_WORD, "f32|int8", 0, offsetof(train_options, int8.layers),
     "Dense layers of the model. int8: quantisation-aware training. MODEL is then quantised, and validation measures "
     "it that way. With --init the layers are in INT8 from the first step, else after a tenth of the steps. f32 "
     "(default): floats."},
    OPTION_RANGES(train_options, int8.ranges),
    OPTION_KEEP(train_options, int8.keep),
    {0, "checkpoint", OPTION_TEXT, "FILE", 0, offsetof(train_options, checkpoint),
     "Keep the training's state here after each epoch, so that it can go on after a failure. Without it nothing is "
     "kept."},
    {0, "checkpoint-steps", OPTION_COUNT, "N", 0, offsetof(train_options, checkpoint_steps),
     "Also keep it after each N batches; 0 (default) does not."},
    {0, "resume", OPTION_FLAG, NULL, 0, offsetof(train_options, resume),
     "Go on from the checkpoint if it exists. The model is then the same as without the interruption, if it "
     "takes as many threads and ranks."},
    {0, "precision", OPTION_WORD, "f32|bf16|fp16|auto", 0, offsetof(train_options, precision),
     "Type of the numbers that the deep part's products multiply. Weights, optimisers, sums and the model stay f32. "
     "auto uses bf16 if the machine has instructions for it, else f32. Without such instructions bf16 and fp16 are "
     "emulated, no faster than f32. Default: f32, or with --resume the checkpoint's precision."},
    {0, "loss-scale", OPTION_REAL, "X", 0, offsetof(train_options, loss_scale),
     "For fp16: a loss scale from 1 to 2^24 that never changes. Without it, or with 0, the scale begins at 65536, "
     "halves when gradients overflow (the step is then skipped), and doubles after 2,000 good steps."},
    OPTION_LOOKUP(train_options),
    OPTION_PROGRESS(train_options),
    OPTION_JSON(train_options),
    OPTION_LAST};
