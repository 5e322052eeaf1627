#include "cli/common/clock.h"
#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/ranker/commands.h"
#include "cli/ranker/ranking_inputs.h"
#include "cli/ranker/scores.h"

#include <stdlib.h>

/* Rows read, scored and written at a time: enough to keep every core busy. */
#define BLOCK_ROWS 8192

typedef struct predict_options {
    const char *output, *index;
    size_t threads;
    int progress, json;
} predict_options;

typedef struct predict_state {
    const predict_options *options;
    const char *model_path, *data_path;
    sl_ranker *ranker;
    sl_ranker_info info;
    csv_file data;
    lookup lookup;
    sl_predictor *predictor;
    scores *scores;
    size_t rows;
    double predict_s;
} predict_state;

static int open_inputs(predict_state *state) {
    sl_predictor_params params;
    int result = open_model(state->model_path, &state->ranker, &state->info);
    if (result == EXIT_DONE) result = csv_open(&state->data, state->data_path, state->info.spec, state->model_path);
    if (result == EXIT_DONE) result = lookup_open(&state->lookup, state->options->index);
    if (result != EXIT_DONE) return result;
    sl_predictor_params_init(&params);
    params.threads = state->options->threads;
    params.lookup = lookup_callback(&state->lookup, &params.lookup_ctx);
    sl_status status = sl_predictor_create(state->ranker, &params, &state->predictor);
    if (status != SL_OK) return report_status(state->model_path, status);
    return scores_create(state->options->output, state->info.outputs, &state->scores);
}

static int predict_rows(predict_state *state) {
    float *values = allocate(BLOCK_ROWS, state->info.outputs * sizeof *values);
    progress progress;
    sl_table block = {.rows = 1};
    int result = values ? EXIT_DONE : EXIT_FAILED;
    progress_begin(&progress, "predicting", "rows", 0, state->options->progress);
    while (result == EXIT_DONE) {
        result = csv_next(&state->data, BLOCK_ROWS, &block);
        if (result != EXIT_DONE || !block.rows) break;
        double start = now_seconds();
        sl_status status = sl_predictor_predict(state->predictor, &block, values);
        state->predict_s += now_seconds() - start;
        state->rows += block.rows;
        if (status != SL_OK)
            result = lookup_report(&state->lookup, state->data_path, status);
        else
            result = scores_append(state->scores, values, block.rows);
        if (progress_step(&progress, state->rows, 0) && result == EXIT_DONE) result = report_interrupted();
    }
    progress_end(&progress, result == EXIT_DONE);
    free(values);
    return result;
}

static int print_result(const predict_state *state) {
    double rate = state->predict_s > 0 ? (double)state->rows / state->predict_s : 0;
    if (state->options->json) {
        json json;
        json_begin(&json, stdout);
        json_count(&json, "rows", state->rows);
        json_count(&json, "outputs", state->info.outputs);
        json_count(&json, "threads", thread_count(state->options->threads));
        json_real(&json, "predict_s", state->predict_s);
        json_real(&json, "rows_per_s", rate);
        json_text(&json, "output", state->options->output);
        json_end(&json);
    } else
        printf("%s: %zu rows of %zu scores; %.3f s, %.0f rows/s\n", state->options->output, state->rows,
               state->info.outputs, state->predict_s, rate);
    return report_stdout();
}

static int predict_file(predict_state *state) {
    const predict_options *options = state->options;
    int status =
        scores_check(options->output, (const char *const[]){state->model_path, state->data_path, options->index, NULL});
    if (status == EXIT_DONE) status = open_inputs(state);
    if (status == EXIT_DONE) status = predict_rows(state);
    if (status == EXIT_DONE) {
        status = scores_commit(state->scores);
        state->scores = NULL;
    }
    return status == EXIT_DONE ? print_result(state) : status;
}

static int run_predict(const command *self, int argc, char **argv) {
    predict_options options = {0};
    const char *paths[2];
    OPTIONS_PARSE(self, argc, argv, &options, paths);
    predict_state state = {.options = &options, .model_path = paths[0], .data_path = paths[1]};
    int status = predict_file(&state);
    scores_discard(state.scores);
    sl_predictor_free(state.predictor);
    lookup_close(&state.lookup);
    csv_close(&state.data);
    sl_ranker_free(state.ranker);
    return status;
}

static const char *const operands[] = {"MODEL", "DATA.csv", NULL};

static const option predict_table[] = {
    {'o', "output", OPTION_TEXT, "OUT.npy", 1, offsetof(predict_options, output),
     "The scores: .npy of float32, (rows,) or (rows, classes), or .csv, a row of DATA.csv a line."},
    OPTION_THREADS(predict_options, "Threads to predict with; 0 (default) takes all."),
    OPTION_LOOKUP(predict_options),
    OPTION_PROGRESS(predict_options),
    OPTION_JSON(predict_options),
    OPTION_LAST};

const command command_predict = {
    .name = "predict",
    .summary = "score the rows of a CSV file by a model",
    .synopsis = "shortlist predict MODEL DATA.csv -o OUT.npy [--threads N] [--index INDEX] [--progress] [--json]",
    .description =
        "Reads DATA.csv as MODEL's spec says, in blocks, and writes each row's score. The score is a probability, one "
        "a class for a model of several classes, or a value for a model of squared loss. Columns are found by their "
        "names. Columns that the model does not know are passed over, and the label need not be there.\n"
        "A row with too few fields, and a number that cannot be read, end the command. The message names the line, and "
        "OUT is left as it was.\n",
    .examples = "shortlist predict model.slr adult_test.csv -o scores.npy\n"
                "shortlist predict model.slr today.csv -o scores.csv --threads 4\n",
    .operands = operands,
    .options = predict_table,
    .run = run_predict,
};
