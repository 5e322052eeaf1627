#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/report.h"
#include "cli/files/results.h"
#include "cli/files/vectors.h"
#include "cli/recommend/commands.h"
#include "cli/recommend/funnel.h"
#include "cli/recommend/listing.h"

typedef struct recommend_options {
    const char *output, *show;
    funnel_options funnel;
    size_t n, threads;
    int progress, json;
} recommend_options;

typedef struct recommend_state {
    const recommend_options *options;
    funnel_task task;
    funnel *funnel;
    listing *listing; /* exactly one of the two is set */
    results *results;
    funnel_report report;
} recommend_state;

/* Returns whether the output is a file of ids alone, as 'shortlist search' writes it. */
static int writes_ids(const char *path) {
    return path && !has_ending(path, ".csv") && !has_ending(path, ".json");
}

static int write_ids(void *ctx, const answers *answers) {
    return results_append(ctx, answers->ids, NULL, answers->count);
}

static int check_output(const recommend_state *state) {
    const recommend_options *options = state->options;
    const funnel_task *task = &state->task;
    const char *const inputs[] = {task->index_path,    task->model_path,   task->items_path,
                                  task->requests_path, task->vectors_path, NULL};
    if (!options->output) return EXIT_DONE;
    if (!writes_ids(options->output)) return output_check(options->output, inputs);
    if (options->show)
        return report_failure("%s: holds ids alone, without what --show names; name a .csv or .json file",
                              options->output);
    return results_check(options->output, NULL, inputs);
}

static int create_output(recommend_state *state) {
    const recommend_options *options = state->options;
    const char *path = options->output;
    if (writes_ids(path)) return results_create(path, NULL, VECTORS_UNCOUNTED, options->n, &state->results);
    listing_kind kind =
        path ? (has_ending(path, ".csv") ? LISTING_CSV : LISTING_JSON) : (options->json ? LISTING_JSON : LISTING_TEXT);
    return listing_create(kind, path, funnel_items(state->funnel), options->show, &state->listing);
}

static int commit_output(recommend_state *state) {
    int status = state->results ? results_commit(state->results) : listing_commit(state->listing);
    state->results = NULL;
    state->listing = NULL;
    return status;
}

static void print_json(json *json, const recommend_state *state) {
    json_funnel(json, &state->task, &state->report);
    json_text(json, "output", state->options->output);
    json_end(json);
}

static int print_result(const recommend_state *state) {
    const char *output = state->options->output;
    json json;
    if (state->options->json && output) {
        json_begin(&json, stdout);
        print_json(&json, state);
    } else if (!state->options->json) {
        if (output) printf("%s: ", output);
        print_funnel(stdout, &state->task, &state->report);
    }
    return report_stdout();
}

static int recommend_items(recommend_state *state) {
    int status = check_output(state);
    if (status == EXIT_DONE) status = funnel_open(&state->task, &state->funnel);
    if (status == EXIT_DONE) status = create_output(state);
    if (status != EXIT_DONE) return status;
    status = state->results ? funnel_run(state->funnel, write_ids, state->results, &state->report)
                            : funnel_run(state->funnel, listing_take, state->listing, &state->report);
    if (status != EXIT_DONE) return status;
    /* With items on standard output, the report completes their object. */
    if (state->options->json && !state->options->output) print_json(listing_json(state->listing), state);
    status = commit_output(state);
    return status == EXIT_DONE ? print_result(state) : status;
}

static int run_recommend(const command *self, int argc, char **argv) {
    recommend_options options = {0};
    const char *paths[4];
    OPTIONS_PARSE(self, argc, argv, &options, paths);
    recommend_state state = {.options = &options};
    state.task = funnel_task_of(paths, &options.funnel, options.n, options.threads, options.progress);
    int status = recommend_items(&state);
    listing_discard(state.listing);
    results_discard(state.results);
    funnel_close(state.funnel);
    return status;
}

static const char *const operands[] = {"INDEX", "MODEL", "ITEMS", "REQUESTS", NULL};

static const option recommend_table[] = {
    {'n', NULL, OPTION_COUNT, "N", 1, offsetof(recommend_options, n), "Items a request."},
    {'o', "output", OPTION_TEXT, "OUT", 0, offsetof(recommend_options, output),
     "File for the items, best first. A .csv file has a line each (request, rank, id, score, recall_score, and the "
     "columns of --show). A .json file is possible too. An .ibin, .ivecs or .npy file has ids alone, a row a request, "
     "like those of 'shortlist search'. Without --output each item is a line: rank, id, score, "
     "recall score, and the columns of --show."},
    OPTIONS_FUNNEL(recommend_options),
    {0, "max-per-group", OPTION_COUNT, "N", 0, offsetof(recommend_options, funnel.max_per_group),
     "At most N items with the same value of --group per request."},
    {0, "group", OPTION_TEXT, "COLUMN", 0, offsetof(recommend_options, funnel.group),
     "The items' column for --max-per-group."},
    {0, "show", OPTION_TEXT, "COLUMN,...", 0, offsetof(recommend_options, show),
     "Columns of the item table to show with each item."},
    OPTION_THREADS(recommend_options, "Threads to serve with, a request each; 0 (default) takes all."),
    OPTION_PROGRESS(recommend_options),
    OPTION_JSON(recommend_options),
    OPTION_LAST};

const command command_recommend = {
    .name = "recommend",
    .summary = "recall and rank the top items of each request",
    .synopsis = "shortlist recommend INDEX MODEL ITEMS REQUESTS -n N [-o OUT] [--candidates N] [--ef N] "
                "[--item-part layer|codes|layer-bf16|layer-i8] [--max-per-group N --group COLUMN] [--id COLUMN] "
                "[--vectors FILE] [--show COLUMN,...] [--threads N] "
                "[--progress] [--json]",
    .description = "Recalls --candidates items of INDEX that are near each request's vector. Scores them by MODEL from "
                   "the request's columns and the items' rows in ITEMS, and gives the -n best. ITEMS is an item table, "
                   "or a .csv file that one is built from. MODEL none gives the recalled items in their order. ITEMS "
                   "none serves a model without item columns.\n"
                   "REQUESTS is a .csv file with a header. Its columns are the user's features, by name, and three "
                   "more. vector: numbers with blanks between them, unless --vectors is given. exclude: ids with | "
                   "between them that are not to be recommended. relevant: ids that would have been right; NDCG, "
                   "recall and hit rate at -n are then printed, for recall alone and for recall and rank together.\n"
                   "An item that ITEMS lacks is scored with missing values, and counted. Items that were deleted from "
                   "ITEMS are left out.\n",
    .examples = "shortlist recommend films.sl model.slr films.sli users.csv -n 10 --show title,year\n"
                "shortlist recommend films.sl model.slr films.csv users.csv -n 10 --id film -o top.csv --json\n"
                "shortlist recommend films.sl none none users.csv -n 100 -o recalled.ibin --vectors users.fbin\n",
    .operands = operands,
    .options = recommend_table,
    .run = run_recommend,
};
