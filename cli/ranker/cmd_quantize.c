#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/save_handle.h"
#include "cli/ranker/commands.h"
#include "cli/ranker/layer_options.h"
#include "cli/ranker/ranking_inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MODE_AUTO, MODE_STATIC, MODE_DYNAMIC, MODE_BF16, MODE_QAT };

/* Defaults of --mode qat. docs/internals/qat.md explains them. */
#define QAT_EPOCHS     2
#define QAT_RATE_SCALE 0.03
#define QAT_SOFT       0.5

typedef struct quantize_options {
    const char *data, *eval, *output, *group, *keep, *index;
    double max_drop, quantile, timeout;
    int relative, measure, mode, strategy, symmetric, no_bias_correction, tables;
    size_t k, rows, seed, trials, threads;
    int calibration, ranges; /* -1: not given; for numbers, below 0 */
    double rate_scale, soft;
    size_t epochs;
    int progress, json;
} quantize_options;

typedef struct trial_row {
    double value, drop, cost, error;
    int within;
    sl_table_type tables;
    char layers[160];
} trial_row;

typedef struct quantize_state {
    const quantize_options *options;
    const char *model_path;
    sl_ranker *ranker, *made;
    sl_ranker_info info;
    csv_file data, eval;
    lookup lookup;
    kept_layers kept;
    trial_row *trials;
    size_t trial_count, trial_room;
    int out_of_memory;
    sl_precision_search_report report;
    double save_s;
} quantize_state;

#define CALIBRATION_NAME(name, number, text) [number] = (text),
static const char *const calibration_names[] = {SL_CALIBRATION_MAP(CALIBRATION_NAME)};
/* The words of --calibration, separated by bars. */
#define CALIBRATION_WORD(name, number, text) "|" text
#define CALIBRATION_WORDS                    (&("" SL_CALIBRATION_MAP(CALIBRATION_WORD))[1])
static const char *const table_names[] = {"f32", "i8", "i4"};

/* ---------------------------------------------------------------------------------------------------------------
 * Trials
 * ------------------------------------------------------------------------------------------------------------- */

/* Writes one word per layer: "int8:mse int8:minmax f32". */
static void write_layers(const sl_trial *trial, char *text, size_t size) {
    size_t used = 0;
    *text = '\0';
    for (size_t l = 0; l < trial->layers && used < size; l++) {
        sl_precision precision = trial->precisions[l];
        int is_static = precision == SL_PRECISION_INT8 && trial->calibrations;
        used += (size_t)snprintf(text + used, size - used, "%s%s%s%s", l ? " " : "", precision_name(precision),
                                 is_static ? ":" : "", is_static ? calibration_names[trial->calibrations[l]] : "");
    }
}

static void keep_trial(void *ctx, const sl_trial *trial) {
    quantize_state *state = ctx;
    if (state->trial_count == state->trial_room) {
        size_t room = state->trial_room ? 2 * state->trial_room : 256;
        trial_row *larger = realloc(state->trials, room * sizeof *larger);
        if (!larger) {
            state->out_of_memory = 1;
            return;
        }
        state->trials = larger;
        state->trial_room = room;
    }
    trial_row *row = &state->trials[state->trial_count++];
    *row = (trial_row){.value = trial->value,
                       .drop = trial->drop,
                       .cost = trial->cost,
                       .error = trial->error,
                       .within = trial->within,
                       .tables = trial->tables};
    write_layers(trial, row->layers, sizeof row->layers);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The search
 * ------------------------------------------------------------------------------------------------------------- */

static sl_quantize_params quantize_params_of(quantize_state *state) {
    const quantize_options *options = state->options;
    sl_quantize_params how;
    sl_quantize_params_init(&how);
    how.keep = state->kept.names;
    how.keep_count = state->kept.count;
    if (options->calibration >= 0) how.calibration = (sl_calibration)options->calibration;
    if (options->quantile >= 0) how.quantile = options->quantile;
    how.symmetric = options->symmetric;
    how.bias_correction = !options->no_bias_correction;
    how.tables = (sl_table_type)options->tables;
    how.rows = options->rows;
    how.seed = options->seed;
    how.lookup = lookup_callback(&state->lookup, &how.lookup_ctx);
    return how;
}

/* The training of --mode qat. MODEL is its own teacher. */
static sl_train_params training_of(const quantize_state *state) {
    const quantize_options *options = state->options;
    sl_train_params training;
    sl_train_params_init(&training);
    training.threads = options->threads;
    training.epochs = options->epochs ? options->epochs : QAT_EPOCHS;
    training.seed = options->seed;
    training.rate_scale = options->rate_scale >= 0 ? options->rate_scale : QAT_RATE_SCALE;
    training.soft = options->soft >= 0 ? options->soft : QAT_SOFT;
    if (training.soft > 0) training.teacher = state->ranker;
    if (options->ranges >= 0) training.ranges = (sl_train_ranges)options->ranges;
    return training;
}

static int search_precisions(quantize_state *state) {
    const quantize_options *options = state->options;
    const sl_quantize_params how = quantize_params_of(state);
    sl_train_params training = training_of(state);
    progress progress;
    sl_precision_search_params params;
    sl_precision_search_params_init(&params);
    params.quantize = &how;
    if (options->max_drop >= 0) params.max_drop = options->max_drop;
    params.relative = options->relative;
    params.measure = (sl_measure)options->measure;
    params.group = options->group;
    params.ndcg_k = options->k;
    params.strategy = (sl_strategy)options->strategy;
    int any = options->mode == MODE_AUTO || options->mode == MODE_QAT;
    params.leave_static = !any && options->mode != MODE_STATIC;
    params.leave_dynamic = !any && options->mode != MODE_DYNAMIC;
    params.leave_bf16 = !any && options->mode != MODE_BF16;
    params.trials = options->trials;
    params.timeout_s = options->timeout > 0 ? options->timeout : 0;
    params.threads = options->threads;
    params.trial = keep_trial;
    params.trial_ctx = state;
    params.progress = progress_step;
    params.progress_ctx = &progress;
    training.progress = progress_step;
    training.progress_ctx = &progress;
    training.log = report_log(&training.log_ctx);
    if (options->mode == MODE_QAT) params.training = &training;
    state->report = (sl_precision_search_report){.struct_size = sizeof state->report};
    if (options->mode == MODE_QAT)
        progress_begin(&progress, "training", "rows", 0, options->progress);
    else
        progress_begin(&progress, "judging", "trials", 0, options->progress);
    sl_status status =
        sl_ranker_search_precision(state->ranker, &state->data.rows, options->eval ? &state->eval.rows : NULL, &params,
                                   &state->made, &state->report);
    progress_end(&progress, status == SL_OK);
    if (state->out_of_memory) return report_failure("no memory for the table of trials; free some");
    if (status == SL_OK) return EXIT_DONE;
    return lookup_report_run(&state->lookup, state->model_path, &state->data, &state->eval, status);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Results
 * ------------------------------------------------------------------------------------------------------------- */

static uint64_t file_size(const char *path) {
    struct stat file;
    return stat(path, &file) == 0 ? (uint64_t)file.st_size : 0;
}

static void print_json(const quantize_state *state) {
    const sl_precision_search_report *report = &state->report;
    json json;
    json_begin(&json, stdout);
    json_real(&json, "base_value", report->base_value);
    json_real(&json, "value", report->value);
    json_real(&json, "drop", report->drop);
    json_real(&json, "drop_error", report->drop_error);
    json_real(&json, "cost", report->cost);
    json_flag(&json, "within", report->within);
    json_flag(&json, "proved", report->proved);
    json_text(&json, "tables", table_names[report->tables]);
    if (report->blame != SIZE_MAX) {
        sl_layer_info layer = {.struct_size = sizeof layer};
        if (sl_ranker_get_layer(state->made, report->blame, &layer) == SL_OK) json_text(&json, "blame", layer.name);
        json_real(&json, "blame_drop", report->blame_drop);
    }
    json_count(&json, "rows", report->rows);
    json_count(&json, "trials", report->trials);
    json_real(&json, "seconds", report->seconds);
    json_open_array(&json, "dense_layers");
    sl_layer_info layer = {.struct_size = sizeof layer};
    for (size_t l = 0; sl_ranker_get_layer(state->made, l, &layer) == SL_OK; l++)
        json_layer(&json, &layer);
    json_close_array(&json);
    json_open_array(&json, "table");
    for (size_t i = 0; i < state->trial_count; i++) {
        const trial_row *row = &state->trials[i];
        json_open_object(&json, NULL);
        json_text(&json, "layers", row->layers);
        json_text(&json, "tables", table_names[row->tables]);
        json_real(&json, "value", row->value);
        json_real(&json, "drop", row->drop);
        json_real(&json, "cost", row->cost);
        json_real(&json, "error", row->error);
        json_flag(&json, "within", row->within);
        json_close_object(&json);
    }
    json_close_array(&json);
    if (report->within) {
        json_text(&json, "output", state->options->output);
        json_count(&json, "bytes_before", file_size(state->model_path));
        json_count(&json, "bytes", file_size(state->options->output));
        json_real(&json, "save_s", state->save_s);
    }
    json_end(&json);
}

/* Orders trials: nearest to the bound first, then nearest to F32. */
static int comes_before(const trial_row *a, const trial_row *b) {
    if (a->within != b->within) return a->within;
    return a->within ? a->error < b->error : a->drop < b->drop;
}

/* The text shows up to 24 trials. With more, it shows one trial for each cost and type of tables. --json shows all. */
static int is_printed(const quantize_state *state, size_t trial) {
    const trial_row *row = &state->trials[trial];
    if (state->trial_count <= 24) return 1;
    for (size_t i = 0; i < state->trial_count; i++) {
        const trial_row *other = &state->trials[i];
        if (other->cost != row->cost || other->tables != row->tables) continue;
        if (comes_before(other, row) || (!comes_before(row, other) && i < trial)) return 0;
    }
    return 1;
}

static void print_trial(const trial_row *row) {
    printf("  %8.3f %9.5f %8.5f  %-6s  %-6s  %s\n", row->cost, row->drop, row->error, row->within ? "yes" : "no",
           table_names[row->tables], row->layers);
}

static void print_text(const quantize_state *state) {
    const sl_precision_search_report *report = &state->report;
    sl_layer_info layer = {.struct_size = sizeof layer};
    printf("%zu trial%s on %zu rows in %.1f s; F32 has %.5f\n\n", report->trials, report->trials == 1 ? "" : "s",
           report->rows, report->seconds, report->base_value);
    printf("  %8s %9s %8s  %-6s  %-6s  %s\n", "cost", "drop", "error", "within", "tables", "layers");
    for (size_t i = 0; i < state->trial_count; i++)
        if (is_printed(state, i)) print_trial(&state->trials[i]);
    char error[48] = "rows too few for a standard error";
    if (isfinite(report->drop_error)) snprintf(error, sizeof error, "standard error %.5f", report->drop_error);
    printf("\n%s: %.5f, %.5f %s than F32 (%s), at %.3f of the dense layers' time, tables in %s\n",
           report->within ? state->options->output : "the best found", report->value, fabs(report->drop),
           report->drop < 0 ? "better" : "worse", error, report->cost, table_names[report->tables]);
    if (report->within && state->options->mode == MODE_QAT)
        printf("%llu bytes, of %llu\n", (unsigned long long)file_size(state->options->output),
               (unsigned long long)file_size(state->model_path));
    else if (report->within)
        printf("%s; %llu bytes, of %llu\n",
               report->proved ? "no faster choice is within the bound" : "faster choices were left unjudged",
               (unsigned long long)file_size(state->options->output), (unsigned long long)file_size(state->model_path));
    for (size_t l = 0; sl_ranker_get_layer(state->made, l, &layer) == SL_OK; l++)
        print_layer(&layer);
}

/* A bound that allows this drop: its six digits, rounded up. */
static double bound_of(double drop) {
    return drop + fabs(drop) * 6e-6;
}

static int save_and_print(quantize_state *state) {
    const quantize_options *options = state->options;
    const sl_precision_search_report *report = &state->report;
    int status = EXIT_DONE;
    if (report->within)
        status = save_handle(save_ranker, state->made, options->output, options->progress, &state->save_s);
    if (status != EXIT_DONE) return status;
    if (options->json)
        print_json(state);
    else
        print_text(state);
    status = report_stdout();
    if (status != EXIT_DONE || report->within) return status;
    if (options->mode == MODE_QAT)
        return report_failure("the model trained in INT8 is not within the bound, and %s is not written: its drop is "
                              "%g. Give --max-drop %g to take it, keep a layer in F32, or train longer with --epochs",
                              options->output, report->drop, bound_of(report->drop));
    sl_layer_info layer = {.struct_size = sizeof layer, .name = "?"};
    if (report->blame != SIZE_MAX && sl_ranker_get_layer(state->made, report->blame, &layer) != SL_OK) layer.name = "?";
    return report_failure("no model within the bound is faster than F32, and %s is not written: the least drop is %g; "
                          "layer %s alone drops %g. Give --max-drop %g to take it",
                          options->output, report->drop, layer.name, report->blame_drop, bound_of(report->drop));
}

static int quantize_and_save(quantize_state *state) {
    const quantize_options *options = state->options;
    const char *const inputs[] = {state->model_path, options->data, options->eval ? options->eval : options->data,
                                  options->index, NULL};
    int status = output_check(options->output, inputs);
    if (status == EXIT_DONE) status = kept_read(options->keep, &state->kept);
    if (status == EXIT_DONE) status = open_model(state->model_path, &state->ranker, &state->info);
    if (status == EXIT_DONE) status = csv_open(&state->data, options->data, state->info.spec, state->model_path);
    if (status == EXIT_DONE && options->eval)
        status = csv_open(&state->eval, options->eval, state->info.spec, state->model_path);
    if (status == EXIT_DONE) status = lookup_open(&state->lookup, options->index);
    if (status == EXIT_DONE) status = search_precisions(state);
    return status == EXIT_DONE ? save_and_print(state) : status;
}

/* Reports options of one mode that are given with the other. Returns an exit status. */
static int check_usage(const quantize_options *options) {
    if (options->mode != MODE_QAT) {
        if (options->ranges < 0 && options->rate_scale < 0 && options->soft < 0 && !options->epochs) return EXIT_DONE;
        return report_usage("--epochs, --rate-scale, --soft and --ranges need --mode qat");
    }
    if (!options->strategy && options->calibration < 0 && options->quantile < 0 && !options->symmetric &&
        !options->no_bias_correction && options->timeout < 0 && !options->trials)
        return EXIT_DONE;
    return report_usage("--mode qat trains one choice, and searches for none; leave out --strategy, --calibration, "
                        "--quantile, --symmetric, --no-bias-correction, --timeout and --trials");
}

static int run_quantize(const command *self, int argc, char **argv) {
    sl_quantize_params defaults;
    sl_quantize_params_init(&defaults);
    quantize_options options = {.tables = SL_TABLE_AUTO,
                                .calibration = -1,
                                .rows = defaults.rows,
                                .k = 10,
                                .max_drop = -1,
                                .quantile = -1,
                                .timeout = -1,
                                .ranges = -1,
                                .rate_scale = -1,
                                .soft = -1};
    const char *paths[1];
    OPTIONS_PARSE(self, argc, argv, &options, paths);
    int status = check_usage(&options);
    if (status != EXIT_DONE) return status;
    quantize_state state = {.options = &options, .model_path = paths[0]};
    status = quantize_and_save(&state);
    sl_ranker_free(state.made);
    sl_ranker_free(state.ranker);
    lookup_close(&state.lookup);
    csv_close(&state.eval);
    csv_close(&state.data);
    free(state.trials);
    kept_free(&state.kept);
    return status;
}

static const char *const operands[] = {"MODEL", NULL};

static const option quantize_table[] = {
    {0, "data", OPTION_TEXT, "CSV", 1, offsetof(quantize_options, data),
     "Rows to calibrate on: --rows of them are drawn. Without --eval, accuracy is measured on all of them."},
    {0, "eval", OPTION_TEXT, "CSV", 0, offsetof(quantize_options, eval),
     "Rows that accuracy is measured on: rows that the model was not trained on."},
    {'o', "output", OPTION_TEXT, "OUT", 1, offsetof(quantize_options, output), "The quantised model's file."},
    {0, "max-drop", OPTION_REAL, "X", 0, offsetof(quantize_options, max_drop),
     "How much worse than MODEL the result may be, in the metric (default 0.0005)."},
    {0, "relative", OPTION_FLAG, NULL, 0, offsetof(quantize_options, relative),
     "--max-drop is a share of MODEL's own value."},
    {0, "metric", OPTION_WORD, "default|auc|logloss|ndcg|rmse", 0, offsetof(quantize_options, measure),
     "The metric. default: AUC, or logloss of several classes, or RMSE under squared loss. ndcg needs --group."},
    {0, "group", OPTION_TEXT, "COLUMN", 0, offsetof(quantize_options, group),
     "The column that groups rows for NDCG. With any metric, the standard error keeps each group together."},
    {'k', NULL, OPTION_COUNT, "N", 0, offsetof(quantize_options, k), "Depth of NDCG (default 10)."},
    {0, "mode", OPTION_WORD, "auto|static|dynamic|bf16|qat", 0, offsetof(quantize_options, mode),
     "Precisions that a layer may have besides F32. static: INT8 with ranges of inputs by calibration. dynamic: INT8 "
     "with each row's own ranges. bf16: bf16 alone. auto (default): all of these. qat: MODEL trains on with its layers "
     "in INT8, on the labels of --data, by its own spec."},
    {0, "epochs", OPTION_COUNT, "N", 0, offsetof(quantize_options, epochs), "Epochs of qat; 0 (default): 2."},
    {0, "rate-scale", OPTION_REAL, "FACTOR", 0, offsetof(quantize_options, rate_scale),
     "Multiplies the rates of MODEL's spec in qat (default 0.03)."},
    {0, "soft", OPTION_REAL, "SHARE", 0, offsetof(quantize_options, soft),
     "Share of qat's loss that compares with the scores of MODEL, from 0 to 1 (default 0.5). The labels have the "
     "rest."},
    OPTION_RANGES(quantize_options, ranges),
    {0, "strategy", OPTION_WORD, "exhaustive|accuracy-aware|basic|mse|bayesian", 0,
     offsetof(quantize_options, strategy),
     "How choices are searched. exhaustive (default) judges all, the fastest first, and proves its result. bayesian "
     "judges the choice of the largest expected improvement by a Gaussian process, by --seed. accuracy-aware, basic "
     "and mse begin with all layers in INT8, or in bf16 under --mode bf16. They take layers back to F32. "
     "accuracy-aware takes the layer that gains most. basic takes one layer, then several. mse takes the layer of the "
     "largest squared error."},
    {0, "calibration", OPTION_WORD, CALIBRATION_WORDS, 0, offsetof(quantize_options, calibration),
     "Ranges of inputs for accuracy-aware, basic and mse (default mse). exhaustive and bayesian try all four, and "
     "fewer "
     "for more than four layers. mse also chooses the scales of weights by squared error, those of dynamic layers "
     "under "
     "every strategy."},
    {0, "quantile", OPTION_REAL, "SHARE", 0, offsetof(quantize_options, quantile),
     "The share of inputs that calibration by quantile leaves out (default 0.0001)."},
    {0, "symmetric", OPTION_FLAG, NULL, 0, offsetof(quantize_options, symmetric), "Ranges have 0 in their middle."},
    {0, "no-bias-correction", OPTION_FLAG, NULL, 0, offsetof(quantize_options, no_bias_correction),
     "Biases stay as they are."},
    {0, "tables", OPTION_WORD, "f32|i8|i4|auto", 0, offsetof(quantize_options, tables),
     "Embedding tables: as they are (f32), or in codes of 8 or 4 bits with a scale and an offset a row. auto (default) "
     "judges all three with every choice of the layers, and takes the smallest where costs are equal. Under qat, auto "
     "is f32."},
    {0, "rows", OPTION_COUNT, "N", 0, offsetof(quantize_options, rows),
     "Rows to calibrate on (default 4096). qat begins its ranges on 4096 rows, whatever N is."},
    {0, "seed", OPTION_COUNT, "N", 0, offsetof(quantize_options, seed),
     "Seed to draw these rows, and of bayesian (default 0). Under qat the seed of the training; 0 takes the spec's."},
    OPTION_KEEP(quantize_options, keep),
    {0, "timeout", OPTION_REAL, "S", 0, offsetof(quantize_options, timeout),
     "After S seconds no trial begins, except the first."},
    {0, "trials", OPTION_COUNT, "N", 0, offsetof(quantize_options, trials),
     "Trials at most. 0 (default) sets no limit, but bayesian ends after 100. bayesian takes 1000 at most. exhaustive "
     "judges all calibrations of the precisions it has begun."},
    OPTION_THREADS(quantize_options, "Threads to judge with; 0 (default) takes all."),
    OPTION_LOOKUP(quantize_options),
    OPTION_PROGRESS(quantize_options),
    OPTION_JSON(quantize_options),
    OPTION_LAST};

const command command_quantize = {
    .name = "quantize",
    .summary = "make a model faster and smaller by INT8 and bf16 layers, within an accuracy bound",
    .synopsis =
        "shortlist quantize MODEL --data CSV [--eval CSV] -o OUT [--max-drop X] [--relative] [--metric METRIC] "
        "[--group COLUMN] [-k N] [--mode MODE] [--epochs N] [--rate-scale FACTOR] [--soft SHARE] [--ranges WORD] "
        "[--strategy STRATEGY] [--calibration WORD] [--quantile SHARE] "
        "[--symmetric] [--no-bias-correction] [--tables TYPE] [--rows N] [--seed N] [--keep LAYER=f32] [--timeout S] "
        "[--trials N] [--threads N] [--index INDEX] [--progress] [--json]",
    .description = "Judges choices of a precision and a calibration for each dense layer, and writes the fastest model "
                   "whose metric is at most --max-drop worse. Costs are modelled from multiply-adds, the same on every "
                   "machine. The standard error of the drop says how far these rows can mislead.\nIf no choice is "
                   "within the bound, nothing is written, and the exit status is 1. The message names the least drop, "
                   "and the layer that costs most.\nWith --mode qat there is one choice: all layers in INT8, except "
                   "those of --keep, trained. Options of the search are then refused.\n",
    .examples = "shortlist quantize model.slr --data adult.csv --eval adult_test.csv -o small.slr\n"
                "shortlist quantize model.slr --data clicks.csv -o small.slr --mode static --max-drop 0.001 --json\n"
                "shortlist quantize model.slr --data adult.csv --eval adult_test.csv -o small.slr --mode qat\n",
    .operands = operands,
    .options = quantize_table,
    .run = run_quantize,
};
