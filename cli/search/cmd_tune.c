#include "cli/common/clock.h"
#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/files/truth.h"
#include "cli/files/vectors.h"
#include "cli/index/description.h"
#include "cli/index/open_save.h"
#include "cli/index/tuned_settings.h"
#include "cli/search/commands.h"

#include <stdlib.h>
#include <string.h>

typedef struct tune_options {
    fraction_list recall;
    size_t k, max_ef, threads, wait;
    int progress, json;
} tune_options;

typedef struct tune_state {
    const tune_options *options;
    const char *index_path, *queries_path, *truth_path; /* truth_path NULL: none given */
    sl_index *index;
    sl_index_stats stats;
    vectors *queries;
    void *rows;
    uint64_t *truth;
    sl_tune_report report;
    double tune_s;
} tune_state;

static int load_queries(tune_state *state, element *type) {
    int status = vectors_open(state->queries_path, VECTORS_QUERIES, &state->queries);
    if (status == EXIT_DONE) status = vectors_check_metric(state->queries, state->stats.metric);
    if (status == EXIT_DONE) status = vectors_match_dim(state->queries, state->stats.dim, state->index_path);
    if (status == EXIT_DONE) status = vectors_match_type(state->queries, state->stats.dtype, state->index_path, type);
    if (status != EXIT_DONE) return status;
    if (state->truth_path)
        status = truth_load(state->truth_path, state->queries, state->options->k, NULL, &state->truth);
    if (status == EXIT_DONE && state->truth)
        status = truth_check_ids(state->truth_path, state->index_path, state->index, state->truth, state->queries->n,
                                 state->options->k);
    if (status != EXIT_DONE) return status;
    state->rows = vectors_read_all(state->queries, *type);
    return state->rows ? EXIT_DONE : EXIT_FAILED;
}

static int tune_index(tune_state *state, element type) {
    const tune_options *options = state->options;
    progress progress;
    sl_tune_params params;
    sl_tune_params_init(&params);
    if (options->recall.count) {
        params.targets = options->recall.values;
        params.target_count = options->recall.count;
    }
    params.max_ef = options->max_ef;
    params.threads = options->threads;
    params.progress = progress_step;
    params.progress_ctx = &progress;
    state->report.struct_size = sizeof state->report;
    double start = now_seconds();
    progress_begin(&progress, "tuning", "steps", 0, options->progress);
    sl_status status = sl_index_tune(state->index, state->rows, element_dtype(type), state->queries->n, 0, state->truth,
                                     options->k, &params, &state->report);
    progress_end(&progress, status == SL_OK);
    state->tune_s = now_seconds() - start;
    if (status == SL_OK) return EXIT_DONE;
    /* A message that names a row of the truth or of the queries gets that file's name. */
    int of_truth = status == SL_ENOTFOUND || strstr(sl_last_error(), "truth") != NULL;
    return report_status(of_truth ? state->truth_path : state->queries_path, status);
}

static int print_json(const tune_state *state) {
    json json;
    json_begin(&json, stdout);
    json_text(&json, "index", state->index_path);
    json_index(&json, &state->stats);
    json_count(&json, "k", state->options->k);
    json_count(&json, "queries", state->queries->n);
    json_count(&json, "queries_needed", state->report.queries_needed);
    json_text(&json, "truth", state->truth_path);
    json_count(&json, "threads", thread_count(state->options->threads));
    json_count(&json, "passes", state->report.passes);
    json_real(&json, "tune_s", state->tune_s);
    json_tuned(&json, state->index, state->report.first, state->report.targets);
    json_end(&json);
    return report_stdout();
}

static int print_text(const tune_state *state) {
    const sl_tune_report *report = &state->report;
    printf("%s: ", state->index_path);
    print_index(&state->stats);
    printf("tuned with %zu queries in %.1f s, %zu passes\n\n", state->queries->n, state->tune_s, report->passes);
    print_tuned(state->index, report->first, report->targets);
    if (report->queries_needed > state->queries->n)
        printf("\nother queries may meet a recall that is off by more than 0.005: tune with %zu or more\n",
               report->queries_needed);
    return report_stdout();
}

static int tune_and_save(tune_state *state) {
    const tune_options *options = state->options;
    const char *const inputs[] = {state->queries_path, state->truth_path, NULL};
    element type;
    double save_s;
    int status = output_check_name(state->index_path, inputs);
    if (status == EXIT_DONE)
        status = open_to_change((changing){state->index_path, SL_PLACE_MAP, options->wait, options->progress},
                                &state->index, &state->stats);
    if (status == EXIT_DONE) status = check_depth("-k", options->k, state->stats.n, state->index_path);
    if (status == EXIT_DONE && options->max_ef && options->max_ef < options->k)
        status = report_failure("--max-ef is %zu, -k is %zu; ask for at least -k", options->max_ef, options->k);
    if (status == EXIT_DONE) status = load_queries(state, &type);
    if (status == EXIT_DONE) status = tune_index(state, type);
    if (status == EXIT_DONE) status = keep_changes(state->index, state->index_path, options->progress, &save_s);
    if (status != EXIT_DONE) return status;
    return options->json ? print_json(state) : print_text(state);
}

static int run_tune(const command *self, int argc, char **argv) {
    tune_options options = {.wait = WAIT_DEFAULT};
    const char *paths[3] = {NULL};
    OPTIONS_PARSE(self, argc, argv, &options, paths);
    tune_state state = {.options = &options, .index_path = paths[0], .queries_path = paths[1], .truth_path = paths[2]};
    int status = tune_and_save(&state);
    free(state.rows);
    free(state.truth);
    vectors_close(state.queries);
    sl_index_free(state.index);
    return status;
}

static const char *const operands[] = {"INDEX", "QUERIES", "[TRUTH.ibin]", NULL};

static const option tune_table[] = {
    {'k', NULL, OPTION_COUNT, "N", 1, offsetof(tune_options, k),
     "Neighbours a query. Settings serve searches for this many, and for fewer where that was measured."},
    {0, "recall", OPTION_FRACTIONS, "LIST", 0, offsetof(tune_options, recall),
     "Recalls to reach, such as 0.9,0.95,0.99 (default: ten of them from 0.8 to 0.995)."},
    {0, "max-ef", OPTION_COUNT, "N", 0, offsetof(tune_options, max_ef),
     "The deepest search to try; 0 (default): 16384, or -k where that is more."},
    OPTION_THREADS(tune_options, "Threads that ask; 0 (default) takes all. The result does not depend on it."),
    OPTION_WAIT(tune_options),
    OPTION_PROGRESS(tune_options),
    OPTION_JSON(tune_options),
    OPTION_LAST};

const command command_tune = {
    .name = "tune",
    .summary = "find and store the settings that reach a recall",
    .synopsis = "shortlist tune INDEX QUERIES [TRUTH.ibin] -k N [--recall LIST] [--max-ef N] [--threads N] "
                "[--wait SECONDS] [--progress] [--json]",
    .description =
        "Asks INDEX all of QUERIES at many settings and finds for each recall the cheapest settings that reach it. The "
        "cost counts distances computed and candidates re-ranked. The settings are written into INDEX and replace "
        "those it held for this -k. The file is replaced whole, or, if it was built with --room, changed in place. "
        "'shortlist search --recall' and 'shortlist eval --recall' then use the settings, and 'shortlist info' prints "
        "them. The column 'probes' has the partitions that batches scan instead of walking, and 'one' the partitions "
        "that single queries scan. 'groups' is the number of groups of partitions to choose them from, 0 for all. A "
        "recall that is reached 'by scans alone' serves no search with a filter. QUERIES should be like the queries to "
        "come, some thousand of them. With few, other queries get another recall; the command prints how many are "
        "needed.\nTRUTH.ibin holds the ids of the true neighbours of each query, best first, at least -k a row, as "
        "'shortlist truth' writes them. For an index with ids of its own, use 'shortlist truth --ids'. Without "
        "TRUTH.ibin, every query is compared with every vector as the index holds it. Without a refine copy, the index "
        "holds vectors as their codes kept them.\nA recall that cannot be reached is printed with its reason, and the "
        "command still succeeds.\nVector files are " VECTORS_READ_ENDINGS
        ". From an .hdf5 file the dataset test gives QUERIES and neighbors the truth.\n",
    .examples = "shortlist tune base.sl queries.fbin truth.ibin -k 10\n"
                "shortlist tune base.sl queries.fbin -k 100 --recall 0.9,0.95,0.99 --json\n",
    .operands = operands,
    .options = tune_table,
    .run = run_tune,
};
