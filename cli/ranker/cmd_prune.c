#include "cli/common/clock.h"
#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/save_handle.h"
#include "cli/common/size_text.h"
#include "cli/ranker/commands.h"
#include "cli/ranker/ranking_inputs.h"
#include "cli/ranker/training_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct prune_options {
    const char *output, *data, *valid, *eval, *checkpoint, *index;
    training_options training;
    double units, multiply_adds, weights, weights_end;
    int criterion, per_layer, resume, progress, json;
    size_t multiple, rows, epochs, threads, checkpoint_steps;
} prune_options;

/* Measures of a model on the rows of --eval. */
typedef struct measured {
    sl_metrics metrics;
    double row_us; /* microseconds per row of predicting encoded rows, some hundred at a time on one thread */
} measured;

typedef struct prune_state {
    const prune_options *options;
    const char *model_path;
    sl_ranker *model, *teacher, *pruned;
    sl_ranker_info info;
    csv_file data, valid, eval;
    lookup lookup;
    progress progress;
    sl_prune_report report;
    measured before, after; /* on the rows of --eval */
    double save_s;
} prune_state;

static int prune_model(prune_state *state) {
    const prune_options *options = state->options;
    sl_prune_params params;
    sl_train_params training;
    sl_prune_params_init(&params);
    sl_train_params_init(&training);
    params.units = options->units >= 0 ? options->units : 0;
    params.multiply_adds = options->multiply_adds >= 0 ? options->multiply_adds : 0;
    params.weights = options->weights >= 0 ? options->weights : 0;
    if (options->weights_end >= 0) params.weights_end = options->weights_end;
    params.criterion = (sl_prune_criterion)options->criterion;
    params.per_layer = options->per_layer;
    params.multiple = options->multiple;
    params.rows = options->rows;
    training.threads = options->threads;
    training.epochs = options->epochs;
    training.checkpoint = options->checkpoint;
    training.checkpoint_steps = options->checkpoint_steps;
    training.resume = options->resume;
    training.lookup = lookup_callback(&state->lookup, &training.lookup_ctx);
    set_training(&options->training, state->teacher, &training);
    training.log = report_log(&training.log_ctx);
    training.progress = progress_step;
    training.progress_ctx = &state->progress;
    state->report = (sl_prune_report){.struct_size = sizeof state->report};
    progress_begin(&state->progress, "training", "rows", 0, options->progress && options->data);
    sl_status status =
        sl_ranker_prune(state->model, options->data ? &state->data.rows : NULL,
                        options->valid ? &state->valid.rows : NULL, &params, &training, &state->pruned, &state->report);
    if (status == SL_OK) state->progress.total = state->report.rows * state->report.epochs;
    progress_end(&state->progress, status == SL_OK);
    if (status == SL_OK) return EXIT_DONE;
    if (status == SL_ECANCELED) return report_interrupted();
    return lookup_report_run(&state->lookup, state->model_path, &state->data, &state->valid, status);
}

#define TIMED_ROWS ((size_t)512)
#define ROUNDS     30

/* Predicts a block again and again. *us gets the fastest round's microseconds per row. */
static sl_status time_rows(sl_predictor *predictor, const sl_table *block, float *scores, double *us) {
    sl_encoded rows = {.struct_size = sizeof rows};
    sl_status status = sl_predictor_encode(predictor, block, &rows);
    *us = HUGE_VAL;
    for (size_t round = 0; round < ROUNDS && status == SL_OK; round++) {
        double start = now_seconds();
        status = sl_predictor_predict_encoded(predictor, &rows, scores);
        *us = fmin(*us, (now_seconds() - start) * 1e6 / (double)block->rows);
    }
    return status;
}

/* Times a model on the first rows of --eval. Evaluating has already checked them. */
static sl_status time_model(prune_state *state, const sl_ranker *ranker, float *scores, double *us) {
    sl_predictor_params params;
    sl_predictor *predictor;
    sl_table block = {.struct_size = sizeof block};
    sl_rows *rows = &state->eval.rows;
    sl_status status = rows->rewind(rows->ctx);
    if (status == SL_OK) status = rows->next(rows->ctx, TIMED_ROWS, &block);
    if (status != SL_OK) return status;
    sl_predictor_params_init(&params);
    params.max_rows = TIMED_ROWS;
    params.lookup = lookup_callback(&state->lookup, &params.lookup_ctx);
    status = sl_predictor_create(ranker, &params, &predictor);
    if (status != SL_OK) return status;
    status = time_rows(predictor, &block, scores, us);
    sl_predictor_free(predictor);
    return status;
}

/* Measures a model on the rows of --eval. */
static int measure_model(prune_state *state, const sl_ranker *ranker, measured *out) {
    sl_evaluate_params params;
    *out = (measured){.metrics.struct_size = sizeof out->metrics};
    if (!state->options->eval) return EXIT_DONE;
    float *scores = calloc(TIMED_ROWS * state->info.outputs, sizeof *scores);
    if (!scores) return report_failure("out of memory: cannot hold the scores of %zu rows", TIMED_ROWS);
    sl_evaluate_params_init(&params);
    params.threads = state->options->threads;
    params.lookup = lookup_callback(&state->lookup, &params.lookup_ctx);
    sl_status status = sl_ranker_evaluate(ranker, &state->eval.rows, &params, &out->metrics);
    if (status == SL_OK) status = time_model(state, ranker, scores, &out->row_us);
    free(scores);
    return status == SL_OK ? EXIT_DONE : lookup_report(&state->lookup, state->options->eval, status);
}

/* ---- The report ---- */

static void json_widths(json *json, const char *key, const size_t *widths, size_t count) {
    json_open_array(json, key);
    for (size_t i = 0; i < count; i++)
        json_count(json, NULL, widths[i]);
    json_close_array(json);
}

static void json_eval(json *json, const char *key, const measured *measured) {
    const sl_metrics *metrics = &measured->metrics;
    json_open_object(json, key);
    json_real(json, "auc", metrics->auc);
    json_real(json, "logloss", metrics->logloss);
    json_real(json, "accuracy", metrics->accuracy);
    json_real(json, "rmse", metrics->rmse);
    json_real(json, "row_us", measured->row_us);
    json_close_object(json);
}

static void print_json(const prune_state *state) {
    const sl_prune_report *report = &state->report;
    json json;
    json_begin(&json, stdout);
    json_widths(&json, "hidden_before", report->hidden_before, report->hidden_layers);
    json_widths(&json, "hidden", report->hidden, report->hidden_layers);
    json_count(&json, "parameters_before", report->parameters_before);
    json_count(&json, "parameters", report->parameters);
    json_count(&json, "bytes_before", report->bytes_before);
    json_count(&json, "bytes", report->bytes);
    json_count(&json, "multiply_adds_before", report->multiply_adds_before);
    json_count(&json, "multiply_adds", report->multiply_adds);
    json_count(&json, "dense_weights", report->dense_weights);
    json_count(&json, "dense_zeros", report->dense_zeros);
    json_count(&json, "rows", report->rows);
    json_count(&json, "valid_rows", report->valid_rows);
    json_count(&json, "epochs", report->epochs);
    json_count(&json, "best_epoch", report->best_epoch);
    json_real(&json, "valid_loss_before", report->valid_loss_before);
    json_real(&json, "valid_loss_cut", report->valid_loss_cut);
    json_real(&json, "valid_loss", report->valid_loss);
    json_real(&json, "valid_auc_before", report->valid_auc_before);
    json_real(&json, "valid_auc_cut", report->valid_auc_cut);
    json_real(&json, "valid_auc", report->valid_auc);
    json_real(&json, "importance_s", report->importance_s);
    json_real(&json, "read_s", report->read_s);
    json_real(&json, "epoch_s", report->epoch_s);
    json_real(&json, "save_s", state->save_s);
    if (state->options->eval) {
        json_count(&json, "eval_rows", state->after.metrics.rows);
        json_eval(&json, "eval_before", &state->before);
        json_eval(&json, "eval", &state->after);
    }
    json_text(&json, "output", state->options->output);
    json_end(&json);
}

static double share_of(size_t part, size_t whole) {
    return whole ? (double)part / (double)whole : 0;
}

static void print_text(const prune_state *state) {
    const sl_prune_report *report = &state->report;
    printf("%s: hidden layers of", state->options->output);
    for (size_t l = 0; l < report->hidden_layers; l++)
        printf(" %zu", report->hidden[l]);
    printf(" units; before, of");
    for (size_t l = 0; l < report->hidden_layers; l++)
        printf(" %zu", report->hidden_before[l]);
    printf("\n%zu multiply-adds a row in the layers, %.3f of %zu; %zu parameters, %s in memory, %.3f of %s\n",
           report->multiply_adds, share_of(report->multiply_adds, report->multiply_adds_before),
           report->multiply_adds_before, report->parameters, text_of_size(report->bytes).text,
           share_of(report->bytes, report->bytes_before), text_of_size(report->bytes_before).text);
    if (report->dense_zeros)
        printf("%.3f of the layers' weights are 0; the products are not faster by it\n",
               share_of(report->dense_zeros, report->dense_weights));
    if (report->rows) printf("trained on for %zu epochs of %zu rows\n", report->epochs, report->rows);
    if (isfinite(report->valid_loss))
        printf("loss of %zu validation rows: %.5f before, %.5f cut, %.5f now\n", report->valid_rows,
               report->valid_loss_before, report->valid_loss_cut, report->valid_loss);
    if (isfinite(report->valid_auc))
        printf("their AUC: %.5f before, %.5f cut, %.5f now\n", report->valid_auc_before, report->valid_auc_cut,
               report->valid_auc);
    if (!state->options->eval) return;
    const sl_metrics *before = &state->before.metrics, *after = &state->after.metrics;
    printf("%s, %zu rows:", state->options->eval, after->rows);
    if (isfinite(after->auc)) printf(" AUC %.5f before, %.5f now;", before->auc, after->auc);
    if (isfinite(after->logloss)) printf(" logloss %.5f before, %.5f now;", before->logloss, after->logloss);
    printf(" RMSE %.5f before, %.5f now\n", before->rmse, after->rmse);
    printf("%.2f us a row on one thread before, %.2f now\n", state->before.row_us, state->after.row_us);
}

/* ---- The run ---- */

static int check_outputs(const prune_state *state) {
    const prune_options *options = state->options;
    const char *named[] = {state->model_path, options->data,  options->valid,
                           options->eval,     options->index, options->training.teacher};
    return check_trained(options->output, options->checkpoint, named, sizeof named / sizeof *named);
}

static int open_rows(prune_state *state, csv_file *file, const char *path) {
    return path ? csv_open(file, path, state->info.spec, state->model_path) : EXIT_DONE;
}

static int prune_and_save(prune_state *state) {
    const prune_options *options = state->options;
    int status = check_outputs(state);
    if (status == EXIT_DONE) status = open_model(state->model_path, &state->model, &state->info);
    if (status == EXIT_DONE) status = open_rows(state, &state->data, options->data);
    if (status == EXIT_DONE) status = open_rows(state, &state->valid, options->valid);
    if (status == EXIT_DONE) status = open_rows(state, &state->eval, options->eval);
    if (status == EXIT_DONE) status = lookup_open(&state->lookup, options->index);
    if (status == EXIT_DONE) status = open_optional(options->training.teacher, &state->teacher);
    if (status == EXIT_DONE) status = measure_model(state, state->model, &state->before);
    if (status == EXIT_DONE) status = prune_model(state);
    if (status == EXIT_DONE) status = measure_model(state, state->pruned, &state->after);
    if (status == EXIT_DONE)
        status = save_handle(save_ranker, state->pruned, options->output, options->progress, &state->save_s);
    if (status != EXIT_DONE) return status;
    if (options->json)
        print_json(state);
    else
        print_text(state);
    return report_stdout();
}

static int check_usage(const prune_options *options) {
    if (options->units < 0 && options->multiply_adds < 0 && options->weights < 0)
        return report_usage("nothing is to be cut; give --units, --multiply-adds or --weights");
    if (!options->checkpoint && (options->resume || options->checkpoint_steps))
        return report_usage("--%s needs --checkpoint FILE", options->resume ? "resume" : "checkpoint-steps");
    if (options->weights_end >= 0 && options->weights < 0) return report_usage("--weights-end needs --weights SHARE");
    const char *trains = options->valid                      ? "valid"
                         : options->checkpoint               ? "checkpoint"
                         : options->training.teacher         ? "teacher"
                         : options->training.rate_scale >= 0 ? "rate-scale"
                         : options->weights_end >= 0         ? "weights-end"
                         : options->epochs                   ? "epochs"
                                                             : NULL;
    if (!options->data && trains) return report_usage("--%s needs --data CSV", trains);
    return training_options_check(&options->training);
}

static int run_prune(const command *self, int argc, char **argv) {
    prune_options options = {.training = TRAINING_DEFAULT,
                             .units = -1,
                             .multiply_adds = -1,
                             .weights = -1,
                             .weights_end = -1,
                             .multiple = 1,
                             .rows = 65536};
    const char *paths[1];
    OPTIONS_PARSE(self, argc, argv, &options, paths);
    int status = check_usage(&options);
    if (status != EXIT_DONE) return status;
    prune_state state = {.options = &options, .model_path = paths[0]};
    status = prune_and_save(&state);
    sl_ranker_free(state.pruned);
    sl_ranker_free(state.model);
    sl_ranker_free(state.teacher);
    lookup_close(&state.lookup);
    csv_close(&state.eval);
    csv_close(&state.valid);
    csv_close(&state.data);
    return status;
}

static const char *const operands[] = {"MODEL", NULL};

static const option prune_table[] = {
    {'o', "output", OPTION_TEXT, "OUT", 1, offsetof(prune_options, output),
     "The smaller model's file. The file appears whole or not at all."},
    {0, "data", OPTION_TEXT, "CSV", 0, offsetof(prune_options, data),
     "Rows to measure units with and to train on with. Without them nothing is trained, and --units and "
     "--multiply-adds need --criterion norm."},
    {0, "valid", OPTION_TEXT, "CSV", 0, offsetof(prune_options, valid),
     "Rows to validate the model with after each epoch. Without them the share that the spec names is held out."},
    {0, "eval", OPTION_TEXT, "CSV", 0, offsetof(prune_options, eval),
     "Rows that MODEL and the smaller model are measured on: their measures, and the time that a row takes."},
    {0, "units", OPTION_REAL, "SHARE", 0, offsetof(prune_options, units),
     "Cut this share of the hidden units, below 1. The layers become narrower, and so faster."},
    {0, "multiply-adds", OPTION_REAL, "SHARE", 0, offsetof(prune_options, multiply_adds),
     "In place of --units: cut units until at least this share of the layers' multiply-adds is gone."},
    {0, "weights", OPTION_REAL, "SHARE", 0, offsetof(prune_options, weights),
     "Set this share of the layers' weights to 0, the smallest first. The layers stay as fast as they are."},
    {0, "weights-end", OPTION_REAL, "SHARE", 0, offsetof(prune_options, weights_end),
     "Share of the training's steps after which all of these weights are 0; default 0.5."},
    {0, "criterion", OPTION_WORD, "taylor|norm", 0, offsetof(prune_options, criterion),
     "How to find the units that matter least. taylor (default): units whose removal changes the loss least, to first "
     "order. norm: units with the smallest weights."},
    {0, "per-layer", OPTION_FLAG, NULL, 0, offsetof(prune_options, per_layer),
     "Cut the same share of each layer. Without it, the least important units of all layers go."},
    {0, "multiple", OPTION_COUNT, "N", 0, offsetof(prune_options, multiple),
     "Round widths up to multiples of N (default 1). Multiples of 16 fill vector registers."},
    {0, "rows", OPTION_COUNT, "N", 0, offsetof(prune_options, rows),
     "Rows that taylor looks at; default 65536; 0: all."},
    {0, "epochs", OPTION_COUNT, "N", 0, offsetof(prune_options, epochs),
     "Epochs at most to train on for, in place of the spec's; 0 (default) leaves the spec's."},
    OPTIONS_TRAINING(prune_options, training),
    OPTION_THREADS(prune_options, "Threads to train with; 0 (default) takes as many as OMP_NUM_THREADS or the machine "
                                  "gives."),
    {0, "checkpoint", OPTION_TEXT, "FILE", 0, offsetof(prune_options, checkpoint),
     "Keep the training's state here after each epoch. Without it nothing is kept."},
    {0, "checkpoint-steps", OPTION_COUNT, "N", 0, offsetof(prune_options, checkpoint_steps),
     "Also keep it after each N batches; 0 (default) does not."},
    {0, "resume", OPTION_FLAG, NULL, 0, offsetof(prune_options, resume),
     "Go on from the checkpoint if it exists. All other options must be the same."},
    OPTION_LOOKUP(prune_options),
    OPTION_PROGRESS(prune_options),
    OPTION_JSON(prune_options),
    OPTION_LAST};

const command command_prune = {
    .name = "prune",
    .summary = "make a trained model smaller",
    .synopsis =
        "shortlist prune MODEL -o OUT [--data CSV] [--valid CSV] [--eval CSV] [--units SHARE | "
        "--multiply-adds SHARE] [--weights SHARE] [--weights-end SHARE] [--criterion taylor|norm] [--per-layer] "
        "[--multiple N] [--rows N] [--epochs N] [--teacher MODEL] [--temperature T] [--soft SHARE] "
        "[--rate-scale FACTOR] [--threads N] [--checkpoint FILE] [--checkpoint-steps N] [--resume] "
        "[--index INDEX] [--progress] [--json]",
    .description = "Cuts hidden units of a model's deep part, or sets weights of its layers to 0, or both. Then the "
                   "model is trained on by its own spec, with the rows of --data. Features stay as they were fitted. "
                   "The result is a model like others.\n"
                   "Cut units make a model faster. Weights that are 0 do not: the layers are multiplied as dense "
                   "matrices. MODEL itself is a good teacher.\n",
    .examples = "shortlist prune model.slr --data adult.csv -o small.slr --multiply-adds 0.75 --teacher model.slr "
                "--rate-scale 0.3\n"
                "shortlist prune model.slr --data adult.csv -o sparse.slr --weights 0.8 --eval later.csv --json\n"
                "shortlist prune model.slr -o small.slr --units 0.25 --criterion norm --multiple 16\n",
    .operands = operands,
    .options = prune_table,
    .run = run_prune,
};
