#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/files/ids.h"
#include "cli/files/truth.h"
#include "cli/index/description.h"
#include "cli/index/open_save.h"
#include "cli/index/storage.h"
#include "cli/search/commands.h"
#include "cli/search/eval_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Keeps the index's ids that pass the masks, the range and the list, if there is one. The ids have no order. */
static int keep_passing(const eval_state *state, sl_index *index, truth_filter *allowed) {
    const filter_choice *choice = &state->options->filter;
    const size_t room = state->stats.n;
    size_t n = room, kept = 0;
    uint64_t *ids = allocate(n, sizeof *ids), *tags = allocate(n, sizeof *tags), *keys = allocate(n, sizeof *keys);
    sl_status status = SL_ENOMEM;
    if (ids && tags && keys) {
        status = sl_index_ids(index, ids, room, &n);
        /* A damaged file may mark fewer deleted vectors than it counts. */
        if (n > room) n = room;
        if (status == SL_OK && filter_asks_tags(choice)) status = sl_index_get_tags(index, ids, n, tags);
        if (status == SL_OK && filter_asks_keys(choice)) status = sl_index_get_keys(index, ids, n, keys);
        for (size_t i = 0; status == SL_OK && i < n; i++)
            if (filter_passes(choice, tags[i], keys[i]) && (!choice->path || truth_allows(allowed, ids[i])))
                ids[kept++] = ids[i];
        if (status != SL_OK) (void)report_status(state->index_path, status);
    }
    free(tags);
    free(keys);
    free(allowed->ids);
    *allowed = (truth_filter){NULL, ids, kept};
    return status == SL_OK ? EXIT_DONE : EXIT_FAILED;
}

/* Lists the ids that the filter allows, and counts the vectors. */
static int read_filter(eval_state *state, sl_index *index, truth_filter *out) {
    const filter_choice *choice = &state->options->filter;
    const int by_words = filter_asks_tags(choice) || filter_asks_keys(choice);
    sl_filter *filter = NULL;
    out->path = choice->path;
    int status = filter_make(choice, state->index_path, index, &filter);
    if (status == EXIT_DONE && by_words && state->stats.multi)
        status = report_failure("%s: an id may have several vectors, and tags and keys of each; give --filter the ids",
                                state->index_path);
    state->allowed = filter ? sl_filter_count(filter) : 0;
    sl_filter_free(filter);
    if (status == EXIT_DONE && choice->path) status = vectors_read_list(choice->path, &out->n, &out->ids);
    if (status == EXIT_DONE && out->ids) qsort(out->ids, out->n, sizeof *out->ids, compare_ids);
    if (status == EXIT_DONE && by_words) status = keep_passing(state, index, out);
    if (status == EXIT_DONE && by_words && out->ids) qsort(out->ids, out->n, sizeof *out->ids, compare_ids);
    if (status != EXIT_DONE || state->allowed) return status;
    if (by_words) return report_failure("%s: none of its vectors passes the filter; ask for less", state->index_path);
    return report_failure("%s: none of its ids is in %s; give ids that the index holds", choice->path,
                          state->index_path);
}

/* Loads and checks the truth, of the allowed vectors if there is a filter. */
static int load_rows(eval_state *state, sl_index *index) {
    truth_filter filter = {0};
    size_t *wanted = &state->task.wanted;
    *wanted = state->options->k;
    int status = state->task.filter ? read_filter(state, index, &filter) : EXIT_DONE;
    if (state->task.filter && state->allowed < *wanted) *wanted = state->allowed;
    if (status == EXIT_DONE)
        status =
            truth_load(state->truth_path, state->queries, *wanted, state->task.filter ? &filter : NULL, &state->truth);
    if (status == EXIT_DONE)
        status = truth_check_ids(state->truth_path, state->index_path, index, state->truth, state->queries->n, *wanted);
    free(filter.ids);
    return status;
}

/* Loads the truth with each row in rising order. Another handle checks it: its ids in memory are not measured. */
static int load_truth(eval_state *state) {
    sl_index *index;
    sl_index_stats stats;
    int status = open_index(state->index_path, (opening){.place = SL_PLACE_MAP, .tier = SL_TIER_NONE}, &index, &stats);
    if (status != EXIT_DONE) return status;
    status = load_rows(state, index);
    sl_index_free(index);
    size_t wanted = state->task.wanted;
    for (size_t q = 0; status == EXIT_DONE && q < state->queries->n; q++)
        qsort(state->truth + q * wanted, wanted, sizeof *state->truth, compare_ids);
    return status;
}

static int load_queries(eval_state *state) {
    element type;
    int status = vectors_open(state->queries_path, VECTORS_QUERIES, &state->queries);
    if (status == EXIT_DONE) status = vectors_check_metric(state->queries, state->stats.metric);
    if (status == EXIT_DONE) status = vectors_match_dim(state->queries, state->stats.dim, state->index_path);
    if (status == EXIT_DONE) status = vectors_match_type(state->queries, state->stats.dtype, state->index_path, &type);
    if (status != EXIT_DONE) return status;
    state->rows = vectors_read_all(state->queries, type);
    state->task.dtype = element_dtype(type);
    state->task.nq = state->queries->n;
    state->task.row = state->queries->dim * element_size(type);
    state->task.queries = state->rows;
    return state->rows ? EXIT_DONE : EXIT_FAILED;
}

/* Checks that a count lies between 1 and `most`. */
static int check_count(const char *option, size_t value, size_t most) {
    if (value > 0 && value <= most) return EXIT_DONE;
    return report_failure("%s is %zu; ask for 1 to %zu", option, value, most);
}

/* Returns whether this process measures alone. */
static int runs_alone(const eval_options *options) {
    return options->procs.count == 1 && options->procs.values[0] == 1;
}

/* Checks --procs. Processes that share a CPU measure the scheduler, so only a user who names the CPUs may ask for
 * them. */
static int check_procs(const eval_options *options) {
    cpu_list cpus = {0};
    size_t most = most_procs(options);
    int status = EXIT_DONE;
    for (size_t i = 0; status == EXIT_DONE && i < options->procs.count; i++)
        status = check_count("--procs", options->procs.values[i], 1024);
    if (status != EXIT_DONE || most == 1 || options->pin.count) return status;
    status = cpu_list_allowed(&cpus);
    if (status == EXIT_DONE && most > cpus.count)
        status = report_failure("--procs is %zu, but this process may run on %zu CPU%s; ask for fewer, or name the "
                                "CPUs to share with --pin",
                                most, cpus.count, cpus.count == 1 ? "" : "s");
    free(cpus.cpus);
    return status;
}

static int check_options(const eval_state *state) {
    const eval_options *options = state->options;
    int status = check_depth("-k", options->k, state->stats.n, state->index_path);
    for (size_t i = 0; status == EXIT_DONE && i < options->ef.count; i++)
        status = check_depth("--ef", options->ef.values[i], state->stats.n, state->index_path);
    if (status == EXIT_DONE) status = check_count("--threads", options->threads, SL_MAX_THREADS);
    if (status == EXIT_DONE) status = check_procs(options);
    if (status == EXIT_DONE) status = check_count("--repeat", options->repeat, 1000);
    return status;
}

static int prepare_task(eval_state *state) {
    const eval_options *options = state->options;
    eval_task *task = &state->task;
    task->index_path = state->index_path;
    task->queries_path = state->queries_path;
    task->numa = options->numa;
    task->prefault = options->prefault;
    task->tier = (sl_tier)options->tier;
    task->k = options->k;
    task->truth = state->truth;
    task->max_visits = options->max_visits;
    task->threads = options->threads;
    task->procs = options->procs.values;
    task->groups = options->procs.count;
    task->cpus = (cpu_list){(size_t *)options->pin.values, options->pin.count};
    if (runs_alone(options) || options->pin.count) return EXIT_DONE;
    return cpu_list_allowed(&task->cpus);
}

static int evaluate_index(eval_state *state) {
    const eval_options *options = state->options;
    const char *const inputs[] = {state->index_path, state->queries_path, state->truth_path, options->filter.path,
                                  NULL};
    int status = options->plot ? output_check(options->plot, inputs) : EXIT_DONE;
    /* With --procs, each process opens the index for itself. This handle then only provides the index's facts. */
    int copies = runs_alone(options) && options->tier != SL_TIER_DRAM;
    state->task.place = options->place >= 0 ? (sl_place)options->place : copies ? SL_PLACE_DRAM : SL_PLACE_MAP;
    opening how = {.place = SL_PLACE_MAP, .tier = SL_TIER_NONE};
    if (runs_alone(options))
        how = (opening){.place = state->task.place,
                        .numa = options->numa,
                        .prefault = options->prefault,
                        .tier = (sl_tier)options->tier,
                        .progress = options->progress};
    if (status == EXIT_DONE) status = open_index(state->index_path, how, &state->index, &state->stats);
    if (status == EXIT_DONE) status = await_tier(state->index, state->index_path);
    if (status == EXIT_DONE) status = check_options(state);
    if (status == EXIT_DONE) status = load_queries(state);
    if (status == EXIT_DONE) status = load_truth(state);
    if (status == EXIT_DONE) status = prepare_task(state);
    if (status == EXIT_DONE) status = eval_sweep(state);
    if (status == EXIT_DONE) status = eval_draw(state);
    if (status != EXIT_DONE) return status;
    eval_print_results(state);
    return report_stdout();
}

static int run_eval(const command *self, int argc, char **argv) {
    eval_options options = {.threads = 1, .procs = {{1}, 1}, .repeat = 3, .place = -1, .filter = FILTER_CHOICE_ALL};
    const char *paths[3];
    OPTIONS_PARSE(self, argc, argv, &options, paths);
    if (options.ef.count && options.recall.count) return report_usage("--ef and --recall exclude one another");
    if (filter_check(&options.filter) != EXIT_DONE) return EXIT_USAGE;
    eval_state state = {.options = &options, .index_path = paths[0], .queries_path = paths[1], .truth_path = paths[2]};
    if (filter_is_asked(&options.filter)) state.task.filter = &options.filter;
    int status = evaluate_index(&state);
    eval_runner_free(state.runner);
    if (state.task.cpus.cpus != options.pin.values) free(state.task.cpus.cpus);
    for (size_t i = 0; i < state.count; i++)
        free(state.points[i].groups);
    free(state.points);
    free(state.truth);
    free(state.rows);
    vectors_close(state.queries);
    sl_index_free(state.index);
    return status;
}

static const char *const operands[] = {"INDEX", "QUERIES", "TRUTH.ibin", NULL};

static const option eval_table[] = {
    {'k', NULL, OPTION_COUNT, "N", 1, offsetof(eval_options, k), "Neighbours a query."},
    {0, "ef", OPTION_COUNTS, "LIST", 0, offsetof(eval_options, ef),
     "Depths to measure, such as 16,32,64 (default: a ladder from 10 to 1024). A depth below -k counts as -k."},
    {0, "recall", OPTION_FRACTIONS, "LIST", 0, offsetof(eval_options, recall),
     "Instead of --ef: recalls to reach, such as 0.9,0.95,0.99. For each recall, the settings that 'shortlist tune' "
     "stored in the index are measured. Without stored settings, or with --rerank, the command finds and measures the "
     "smallest ef that reaches the recall on these queries. Points passed on the way are printed above, measured by "
     "one pass each. A recall is given up where searching twice and four times as deep finds nothing more."},
    {0, "filter", OPTION_TEXT, "FILE", 0, offsetof(eval_options, filter.path),
     "Find only these ids, as 'shortlist search --filter'. The true neighbours are then the first -k ids of a row of "
     "TRUTH.ibin that are among these, or all that INDEX has of these where they are fewer. A row that holds fewer is "
     "refused: 'shortlist truth --filter' makes a truth that holds enough. Also prints how many vectors are allowed, "
     "and how many queries ended with each strategy. The masks and keys below are a filter too."},
    OPTION_FILTER_INDEX(eval_options),
    OPTION_THREADS(eval_options, "Threads that ask, each one query at a time (default 1)."),
    {0, "procs", OPTION_COUNTS, "LIST", 0, offsetof(eval_options, procs),
     "Processes, each of --threads threads, each opening the index for itself and asking all queries. They start "
     "together on CPUs of their own (default 1: the command itself). queries/s is the rate of all together while all "
     "are at work. With several numbers, such as 1,2, each number has its turn in each round, and the ratios between "
     "them are printed. The figures of a depth are then those of the last number. More processes than CPUs need "
     "--pin."},
    {0, "pin", OPTION_COUNTS, "LIST", 0, offsetof(eval_options, pin),
     "CPUs to run the threads on, in turn. Without it one process's threads run where the system puts them; numactl "
     "and taskset work as for any program."},
    {0, "place", OPTION_WORD, "dram|map|pmem", 0, offsetof(eval_options, place),
     "Copy the index into memory or map its file. A copy is safe from a file that is cut short (default for one "
     "process). Processes share a mapped file (default with --procs, and with --tier dram, which needs a mapped "
     "file)."},
    OPTION_PLACE_NODES(eval_options),
    OPTION_PREFAULT(eval_options),
    OPTION_TIER(eval_options),
    {0, "max-visits", OPTION_COUNT, "N", 0, offsetof(eval_options, max_visits),
     "End each query after N evaluations, as 'shortlist search --max-visits'. Also prints how many queries ended so."},
    {0, "rerank", OPTION_COUNT, "N", 0, offsetof(eval_options, rerank),
     "Candidates the refine copy re-ranks; 0 (default) chooses from -k and ef."},
    {0, "repeat", OPTION_COUNT, "N", 0, offsetof(eval_options, repeat),
     "Passes over the queries for each figure; the median is printed (default 3)."},
    {0, "plot", OPTION_TEXT, "F.svg", 0, offsetof(eval_options, plot),
     "Draw queries a second over recall into this SVG file."},
    OPTION_PROGRESS(eval_options),
    OPTION_JSON(eval_options),
    OPTION_LAST};

const command command_eval = {
    .name = "eval",
    .summary = "measure recall and speed against ground truth",
    .synopsis =
        "shortlist eval INDEX QUERIES TRUTH.ibin -k N [--ef LIST | --recall LIST] [--filter FILE] "
        "[--any-tags MASK] [--all-tags MASK] [--none-tags MASK] [--key-min KEY] [--key-max KEY] [--threads N] "
        "[--procs LIST] [--pin LIST] [--place dram|map|pmem] [--numa interleave|bind:N|local] [--prefault] [--tier "
        "auto|none|dram] "
        "[--max-visits N] [--rerank N] [--repeat N] [--plot F.svg] [--progress] [--json]",
    .description =
        "At each depth, searches every query, one per call. Prints recall, queries a second, the 50th, 99th and 99.9th "
        "percentile of a query's time, and the distances computed for a query. Then searches all queries in one call, "
        "which may work on several at once, for the queries per second in batch. The batch's recall differs where a "
        "batch scans. Recall is the share of the true -k nearest among those returned, averaged over the queries. "
        "TRUTH.ibin holds the ids of the true neighbours, best first, at least -k a row, as 'shortlist truth' writes "
        "them. For an index with ids of its own, use 'shortlist truth --ids'. An id that INDEX lacks is refused. A "
        "pass that warms the caches goes first, and the command waits for a tier in memory. At the end the command "
        "prints the memory that the measuring process holds. With --procs it prints that of one process alone and of "
        "all together: their proportional shares (PSS). A page held by two processes counts half for each. With --numa "
        "it also prints on which memory nodes the pages of layer 0 lie, as the first process has them.\nVector files "
        "are " VECTORS_READ_ENDINGS ". From an .hdf5 file the dataset test gives QUERIES and neighbors the truth.\n",
    .examples = "shortlist eval base.sl queries.fbin truth.ibin -k 10\n"
                "shortlist eval base.sl queries.fbin truth.ibin -k 10 --filter in-stock.npy\n"
                "shortlist eval base.sl queries.fbin truth.ibin -k 10 --any-tags 0x6 --key-min 100\n"
                "shortlist eval base.sl queries.fbin truth.ibin -k 10 --recall 0.9,0.95,0.99 --pin 1 --json\n"
                "shortlist eval base.sl queries.fbin truth.ibin -k 10 --procs 1,8 --plot eval.svg\n",
    .operands = operands,
    .options = eval_table,
    .run = run_eval,
};
