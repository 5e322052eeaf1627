#include "cli/common/clock.h"
#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/ranker/ranking_inputs.h"
#include "cli/recommend/commands.h"
#include "cli/recommend/funnel.h"

#include <math.h>

typedef struct evaluate_options {
    const char *group, *index, *items;
    funnel_options funnel;
    size_t k, threads;
    int progress, json;
} evaluate_options;

typedef struct evaluate_state {
    const evaluate_options *options;
    const char *model_path, *data_path;
    sl_ranker *ranker;
    sl_ranker_info info;
    csv_file data;
    lookup lookup;
    sl_metrics metrics;
    double evaluate_s;
} evaluate_state;

static int evaluate_rows(evaluate_state *state) {
    const evaluate_options *options = state->options;
    progress progress;
    sl_evaluate_params params;
    sl_evaluate_params_init(&params);
    params.threads = options->threads;
    params.group = options->group;
    params.ndcg_k = options->k;
    params.lookup = lookup_callback(&state->lookup, &params.lookup_ctx);
    params.progress = progress_step;
    params.progress_ctx = &progress;
    state->metrics = (sl_metrics){.struct_size = sizeof state->metrics};
    double start = now_seconds();
    progress_begin(&progress, "evaluating", "rows", 0, options->progress);
    sl_status status = sl_ranker_evaluate(state->ranker, &state->data.rows, &params, &state->metrics);
    progress_end(&progress, status == SL_OK);
    state->evaluate_s = now_seconds() - start;
    return status == SL_OK ? EXIT_DONE : lookup_report(&state->lookup, state->data_path, status);
}

/* A figure of the metrics. NaN if it does not apply: null in JSON, and left out of the text. */
typedef struct figure {
    const char *key, *name;
    double value;
} figure;

#define FIGURES 9

static void list_figures(const sl_metrics *metrics, figure *out) {
    const figure figures[FIGURES] = {
        {"logloss", "logloss", metrics->logloss},
        {"auc", "AUC", metrics->auc},
        {"accuracy", "accuracy", metrics->accuracy},
        {"rmse", "RMSE", metrics->rmse},
        {"base_rate", "mean label", metrics->base_rate},
        {"calibration", "mean score / mean label", metrics->calibration},
        {"normalized_entropy", "normalised entropy", metrics->normalized_entropy},
        {"group_auc", "AUC within groups", metrics->group_auc},
        {"ndcg", "NDCG within groups", metrics->ndcg},
    };
    for (size_t i = 0; i < FIGURES; i++)
        out[i] = figures[i];
}

static double rows_per_s(const evaluate_state *state) {
    return state->evaluate_s > 0 ? (double)state->metrics.rows / state->evaluate_s : 0;
}

/* Writes the gain in NDCG of a list of one row. */
static const char *gain_name(const sl_metrics *metrics) {
    return metrics->ndcg_linear ? "label" : "2^label - 1";
}

static void print_json(const evaluate_state *state) {
    const sl_metrics *metrics = &state->metrics;
    figure figures[FIGURES];
    json json;
    list_figures(metrics, figures);
    json_begin(&json, stdout);
    json_count(&json, "rows", metrics->rows);
    for (size_t i = 0; i < FIGURES; i++)
        json_real(&json, figures[i].key, figures[i].value);
    json_count(&json, "k", metrics->ndcg_k);
    if (metrics->groups) json_text(&json, "gain", gain_name(metrics));
    json_count(&json, "groups", metrics->groups);
    json_open_array(&json, "deciles");
    for (size_t i = 0; i < SL_DECILES; i++) {
        json_open_object(&json, NULL);
        json_count(&json, "rows", metrics->decile_rows[i]);
        json_real(&json, "score", metrics->decile_score[i]);
        json_real(&json, "label", metrics->decile_label[i]);
        json_close_object(&json);
    }
    json_close_array(&json);
    json_count(&json, "threads", thread_count(state->options->threads));
    json_real(&json, "rows_per_s", rows_per_s(state));
    json_end(&json);
}

static void print_text(const evaluate_state *state) {
    const sl_metrics *metrics = &state->metrics;
    figure figures[FIGURES];
    list_figures(metrics, figures);
    printf("%s: %zu rows, %.0f rows/s on %zu threads\n", state->data_path, metrics->rows, rows_per_s(state),
           thread_count(state->options->threads));
    for (size_t i = 0; i < FIGURES; i++)
        if (isfinite(figures[i].value)) printf("  %-24s %10.5f\n", figures[i].name, figures[i].value);
    if (metrics->groups)
        printf("  groups %zu, NDCG at %zu, gain %s\n", metrics->groups, metrics->ndcg_k, gain_name(metrics));
    if (state->info.loss == SL_LOSS_MULTICLASS) return;
    printf("\n  decile       rows  mean score  mean label\n");
    for (size_t i = 0; i < SL_DECILES; i++)
        if (metrics->decile_rows[i])
            printf("  %6zu %10zu %11.5f %11.5f\n", i + 1, metrics->decile_rows[i], metrics->decile_score[i],
                   metrics->decile_label[i]);
}

static int evaluate_model(evaluate_state *state) {
    int status = open_model(state->model_path, &state->ranker, &state->info);
    if (status == EXIT_DONE) status = csv_open(&state->data, state->data_path, state->info.spec, state->model_path);
    if (status == EXIT_DONE) status = lookup_open(&state->lookup, state->options->index);
    if (status == EXIT_DONE) status = evaluate_rows(state);
    if (status == EXIT_DONE) {
        if (state->options->json)
            print_json(state);
        else
            print_text(state);
        status = report_stdout();
    }
    lookup_close(&state->lookup);
    csv_close(&state->data);
    sl_ranker_free(state->ranker);
    return status;
}

static int print_funnel_report(const evaluate_state *state, const funnel_task *task, const funnel_report *report) {
    if (!report->judged)
        return report_failure(
            "%s: no request says what is relevant; add a column 'relevant' of ids with | between them",
            state->data_path);
    if (state->options->json) {
        json json;
        json_begin(&json, stdout);
        json_count(&json, "k", task->n);
        json_funnel(&json, task, report);
        json_end(&json);
    } else {
        printf("%s: ", state->data_path);
        print_funnel(stdout, task, report);
    }
    return report_stdout();
}

static int evaluate_funnel(const evaluate_state *state) {
    const evaluate_options *options = state->options;
    const char *const paths[] = {options->index, state->model_path, options->items, state->data_path};
    const funnel_task task = funnel_task_of(paths, &options->funnel, options->k, options->threads, options->progress);
    funnel *funnel;
    funnel_report report;
    int status = funnel_open(&task, &funnel);
    if (status == EXIT_DONE) status = funnel_run(funnel, NULL, NULL, &report);
    if (status == EXIT_DONE) status = print_funnel_report(state, &task, &report);
    funnel_close(funnel);
    return status;
}

static int check_options(const evaluate_options *options) {
    const funnel_options *funnel = &options->funnel;
    if (options->items && !options->index) return report_usage("--items needs --index INDEX");
    if (options->items && options->group) return report_usage("--group and --items exclude one another");
    if (!options->items && (funnel->candidates || funnel->ef || funnel->id || funnel->vectors || funnel->item_part))
        return report_usage("--candidates, --ef, --id, --item-part and --vectors are of the whole funnel; name --items "
                            "as well");
    return options->k ? EXIT_DONE : report_failure("-k is 0; ask for at least 1");
}

static int run_evaluate(const command *self, int argc, char **argv) {
    evaluate_options options = {.k = 10};
    const char *paths[2];
    OPTIONS_PARSE(self, argc, argv, &options, paths);
    evaluate_state state = {.options = &options, .model_path = paths[0], .data_path = paths[1]};
    int status = check_options(&options);
    if (status != EXIT_DONE) return status;
    return options.items ? evaluate_funnel(&state) : evaluate_model(&state);
}

static const char *const operands[] = {"MODEL", "DATA.csv", NULL};

static const option evaluate_table[] = {
    {0, "group", OPTION_TEXT, "COLUMN", 0, offsetof(evaluate_options, group),
     "Group the rows by this column's values, such as users: prints NDCG and AUC within the groups."},
    {'k', NULL, OPTION_COUNT, "N", 0, offsetof(evaluate_options, k),
     "Depth of NDCG, and of the whole funnel's recall and hit rate (default 10)."},
    {0, "index", OPTION_TEXT, "INDEX", 0, offsetof(evaluate_options, index),
     "With --items, the index to search. Otherwise the index that provides the vectors, by id, of vector features "
     "whose column holds ids."},
    {0, "items", OPTION_TEXT, "ITEMS", 0, offsetof(evaluate_options, items),
     "Measure the whole funnel over this item table (or .csv file). DATA.csv is then a file of requests, as 'shortlist "
     "recommend' takes it, with a column relevant."},
    OPTIONS_FUNNEL(evaluate_options),
    OPTION_THREADS(evaluate_options, "Threads to work with; 0 (default) takes all."),
    OPTION_PROGRESS(evaluate_options),
    OPTION_JSON(evaluate_options),
    OPTION_LAST};

const command command_evaluate = {
    .name = "evaluate",
    .summary = "measure how well a model ranks",
    .synopsis =
        "shortlist evaluate MODEL DATA.csv [--group COLUMN] [-k N] [--index INDEX] [--items ITEMS] [--candidates "
        "N] [--ef N] [--id COLUMN] [--item-part layer|codes|layer-bf16|layer-i8] [--vectors FILE] [--threads N] "
        "[--progress] "
        "[--json]",
    .description =
        "Scores the rows of DATA.csv and compares the scores with the labels there. Prints logloss, AUC, accuracy, "
        "RMSE, calibration and normalised entropy. Calibration is the mean score over the mean label, also by tenths "
        "of the rows in the order of their scores. Normalised entropy is logloss over the logloss of always predicting "
        "the mean. Metrics that do not apply to the model's loss are null in --json.\nWith --group, a row's gain in "
        "NDCG is 2^label - 1 where all labels are whole numbers from 0 to 30, else the label. Labels below 0 are "
        "refused with --group.\nWith --index and --items DATA.csv holds requests instead. NDCG, recall and hit rate at "
        "-k are then printed for recall alone and for recall and rank together.\n",
    .examples = "shortlist evaluate model.slr adult_test.csv\n"
                "shortlist evaluate model.slr ratings.csv --group user -k 10 --json\n"
                "shortlist evaluate model.slr requests.csv --index films.sl --items films.sli -k 10\n",
    .operands = operands,
    .options = evaluate_table,
    .run = run_evaluate,
};
