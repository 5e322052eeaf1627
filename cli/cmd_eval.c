#include "cli/commands.h"

#include "cli/eval.h"
#include "cli/ids.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/stored.h"
#include "cli/truth.h"
#include "cli/vectors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct eval_options {
    count_list ef, pin, procs;
    fraction_list recall;
    const char *plot;
    size_t k, rerank, threads, repeat;
    int place; /* -1: DRAM for one process, the mapped file for several */
    numa_choice numa;
    int prefault, tier;
    int progress, json;
} eval_options;

/* What --recall found for one target. */
typedef struct target {
    double recall;
    size_t point; /* number in points */
    int reached;
    int tuned; /* by the settings that the index holds for it */
} target;

typedef struct eval_state {
    const eval_options *options;
    const char *index_path, *queries_path, *truth_path;
    sl_index *index;
    sl_index_stats stats;
    vectors *queries;
    void *rows;
    uint64_t *truth;
    eval_task task;
    eval_runner *runner;
    progress progress;
    eval_point *points; /* in rising order of ef */
    size_t count, room;
    target targets[OPTION_LIST_MAX];
    sl_index_numa numa; /* with --numa */
    eval_memory memory[OPTION_LIST_MAX + 1];
    size_t memory_count;
} eval_state;

/* By a handle of its own: the ids it reads into memory are no part of what is measured. */
static int check_truth(const eval_state *state) {
    sl_index *index;
    sl_index_stats stats;
    int status = open_index(state->index_path, (opening){.place = SL_PLACE_MAP, .tier = SL_TIER_NONE}, &index, &stats);
    if (status != EXIT_DONE) return status;
    status = truth_check_ids(state->truth_path, state->index_path, index, state->truth, state->queries->n,
                             state->options->k);
    sl_index_free(index);
    return status;
}

/* The truth in the task's form: each row in rising order. */
static int load_truth(eval_state *state) {
    size_t k = state->options->k;
    int status = truth_load(state->truth_path, state->queries, k, &state->truth);
    if (status == EXIT_DONE) status = check_truth(state);
    for (size_t q = 0; status == EXIT_DONE && q < state->queries->n; q++)
        qsort(state->truth + q * k, k, sizeof *state->truth, compare_ids);
    return status;
}

static int load_queries(eval_state *state) {
    element type;
    int status = vectors_open(state->queries_path, VECTORS_QUERIES, &state->queries);
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

static size_t largest_ef(const eval_state *state) {
    return state->stats.n < SL_MAX_EF ? state->stats.n : SL_MAX_EF;
}

/* A count that must lie between 1 and `most`. */
static int check_count(const char *option, size_t value, size_t most) {
    if (value > 0 && value <= most) return EXIT_DONE;
    return report_failure("%s is %zu; ask for 1 to %zu", option, value, most);
}

static size_t most_procs(const eval_options *options) {
    size_t most = 0;
    for (size_t i = 0; i < options->procs.count; i++)
        if (options->procs.values[i] > most) most = options->procs.values[i];
    return most;
}

/* This process measures by itself. */
static int runs_alone(const eval_options *options) {
    return options->procs.count == 1 && options->procs.values[0] == 1;
}

/* Processes that take turns on a CPU measure the scheduler; only who names the CPUs may want that. */
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

/* Below, at or above 0 as one setting's place among the points is before, at or behind the other's. */
static int compare_settings(eval_setting a, eval_setting b) {
    int by_ef = (a.ef > b.ef) - (a.ef < b.ef), by_rerank = (a.rerank > b.rerank) - (a.rerank < b.rerank);
    int by_stop = (a.stop > b.stop) - (a.stop < b.stop);
    int by_probes = (a.probes > b.probes) - (a.probes < b.probes);
    int by_one = (a.probes_one > b.probes_one) - (a.probes_one < b.probes_one);
    int by_groups = (a.groups > b.groups) - (a.groups < b.groups);
    return by_ef       ? by_ef
           : by_rerank ? by_rerank
           : by_stop   ? by_stop
           : by_probes ? by_probes
           : by_one    ? by_one
                       : by_groups;
}

/* The point of this setting, measured if that was not done yet; repeat as of eval_measure. NULL, reported, on
 * failure. */
static eval_point *point_of(eval_state *state, eval_setting setting, size_t repeat) {
    size_t at = 0;
    while (at < state->count && compare_settings(state->points[at].setting, setting) < 0)
        at++;
    if (at < state->count && compare_settings(state->points[at].setting, setting) == 0) return &state->points[at];
    if (state->count == state->room) {
        size_t room = state->room ? 2 * state->room : 64;
        eval_point *larger = allocate(room, sizeof *larger);
        if (!larger) return NULL;
        if (state->count) memcpy(larger, state->points, state->count * sizeof *larger);
        free(state->points);
        state->points = larger;
        state->room = room;
    }
    eval_point point = {0};
    if (eval_measure(state->runner, setting, repeat, &point) != EXIT_DONE) return NULL;
    memmove(state->points + at + 1, state->points + at, (state->count - at) * sizeof *state->points);
    state->points[at] = point;
    state->count++;
    return &state->points[at];
}

/* With an ef of this command's own finding, or of the user's. */
static eval_setting setting_of(const eval_state *state, size_t ef) {
    return (eval_setting){.ef = ef, .rerank = state->options->rerank};
}

/* Of no stored settings. */
static int is_own(const eval_state *state, const eval_point *point) {
    return compare_settings(point->setting, setting_of(state, point->setting.ef)) == 0;
}

/* The smallest depth of the best recall measured: stored settings are measured once all of these are found. */
static size_t best_ef(const eval_state *state) {
    const eval_point *best = NULL;
    for (size_t i = 0; i < state->count; i++) {
        const eval_point *point = &state->points[i];
        if (!best || point->recall > best->recall) best = point;
    }
    return best ? best->setting.ef : state->options->k;
}

/* A depth that reaches the recall, by doubling: *below fails (or is k - 1), *ef does not. *ef is 0 where the recall is
 * out of reach: the largest depth fails, or twice twice as deep a search found nothing more. */
static int bracket_ef(eval_state *state, double recall, size_t *below, size_t *ef) {
    size_t largest = largest_ef(state), stalls = 0;
    double last = -1;
    *below = state->options->k - 1;
    for (*ef = state->options->k;; *ef = *ef < largest / 2 ? 2 * *ef : largest) {
        const eval_point *point = point_of(state, setting_of(state, *ef), 0);
        if (!point) return EXIT_FAILED;
        if (point->recall >= recall) return EXIT_DONE;
        stalls = point->recall > last ? 0 : stalls + 1;
        last = point->recall;
        *below = *ef;
        if (*ef == largest || stalls == 2) break;
    }
    *ef = 0;
    return EXIT_DONE;
}

/* The smallest ef that reaches the recall: by halves between one that fails and one that does not. */
static int find_ef(eval_state *state, double recall, size_t *out) {
    size_t below, ef;
    int status = bracket_ef(state, recall, &below, &ef);
    if (status == EXIT_DONE && ef == 0)
        ef = best_ef(state);
    else
        while (status == EXIT_DONE && ef - below > 1) {
            size_t middle = below + (ef - below) / 2;
            const eval_point *point = point_of(state, setting_of(state, middle), 0);
            if (!point)
                status = EXIT_FAILED;
            else if (point->recall >= recall)
                ef = middle;
            else
                below = middle;
        }
    *out = ef;
    return status;
}

/* The settings that the index holds for the recall, or else the smallest ef that reaches it on these queries. */
static int find_setting(eval_state *state, double recall, eval_setting *out, int *is_tuned) {
    sl_tuned tuned = {.struct_size = sizeof tuned};
    *is_tuned = !state->options->rerank &&
                sl_index_find_tuned(state->index, state->options->k, recall, &tuned) == SL_OK &&
                tuned.ef <= largest_ef(state);
    *out = *is_tuned ? (eval_setting){tuned.ef, tuned.rerank, tuned.stop, tuned.probes, tuned.probes_one, tuned.groups}
                     : setting_of(state, 0);
    /* As a search does that is given the recall. */
    if (state->task.nq / thread_count(state->task.threads) < SL_SCAN_LEAST) out->probes = out->probes_one;
    return *is_tuned ? EXIT_DONE : find_ef(state, recall, &out->ef);
}

/* Finds the settings by single passes, then measures what was found in full. */
static int measure_targets(eval_state *state) {
    const fraction_list *recall = &state->options->recall;
    eval_setting found[OPTION_LIST_MAX];
    int status = EXIT_DONE;
    for (size_t i = 0; status == EXIT_DONE && i < recall->count; i++) {
        status = find_setting(state, recall->values[i], &found[i], &state->targets[i].tuned);
        progress_step(&state->progress, i + 1, recall->count + 1);
    }
    for (size_t i = 0; status == EXIT_DONE && i < recall->count; i++) {
        eval_point *point = point_of(state, found[i], 0);
        status = point ? eval_measure(state->runner, found[i], state->options->repeat, point) : EXIT_FAILED;
        if (status != EXIT_DONE) break;
        state->targets[i].recall = recall->values[i];
        state->targets[i].reached = point->recall >= recall->values[i];
    }
    /* Where the points lie is known once all are there. */
    for (size_t i = 0; status == EXIT_DONE && i < recall->count; i++) {
        const eval_point *point = point_of(state, found[i], 0);
        if (!point) return EXIT_FAILED;
        state->targets[i].point = (size_t)(point - state->points);
    }
    return status;
}

static int measure_list(eval_state *state) {
    static const size_t usual[] = {10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024};
    const count_list *asked = &state->options->ef;
    const size_t *values = asked->count ? asked->values : usual;
    size_t count = asked->count ? asked->count : sizeof usual / sizeof *usual;
    size_t k = state->options->k, largest = largest_ef(state);
    for (size_t i = 0; i < count; i++) {
        /* A search keeps k candidates at the least. */
        size_t ef = values[i] < k ? k : values[i];
        if (ef > largest) ef = largest;
        if (!point_of(state, setting_of(state, ef), state->options->repeat)) return EXIT_FAILED;
        progress_step(&state->progress, i + 1, count);
    }
    return EXIT_DONE;
}

static int measure(eval_state *state) {
    const eval_options *options = state->options;
    eval_point warm = {0};
    int status = eval_runner_create(&state->task, state->index, &state->runner);
    progress_begin(&state->progress, "measuring", "settings",
                   options->recall.count ? options->recall.count + 1 : options->ef.count, options->progress);
    /* Brings the index and the code into the caches. */
    if (status == EXIT_DONE) status = eval_measure(state->runner, setting_of(state, options->k), 1, &warm);
    free(warm.groups);
    if (status == EXIT_DONE) status = options->recall.count ? measure_targets(state) : measure_list(state);
    if (status == EXIT_DONE && options->numa.policy)
        status = eval_runner_numa(state->runner, state->index, &state->numa);
    if (status == EXIT_DONE) state->memory_count = eval_runner_memory(state->runner, state->memory);
    progress_end(&state->progress, status == EXIT_DONE);
    return status;
}

static void print_json(const eval_state *state) {
    const eval_options *options = state->options;
    json json;
    json_begin(&json, stdout);
    json_text(&json, "index", state->index_path);
    json_index(&json, &state->stats);
    json_text(&json, "place", sl_place_name(state->task.place));
    json_count(&json, "k", options->k);
    json_count(&json, "queries", state->task.nq);
    json_count(&json, "threads", options->threads);
    json_count(&json, "procs", most_procs(options));
    json_count(&json, "repeat", options->repeat);
    json_open_array(&json, "points");
    for (size_t i = 0; i < state->count; i++) {
        json_open_object(&json, NULL);
        eval_json_point(&json, &state->task, &state->points[i]);
        json_close_object(&json);
    }
    json_close_array(&json);
    if (options->recall.count) json_open_array(&json, "at");
    for (size_t i = 0; i < options->recall.count; i++) {
        const target *target = &state->targets[i];
        json_open_object(&json, NULL);
        json_real(&json, "target", target->recall);
        json_flag(&json, "reached", target->reached);
        json_flag(&json, "tuned", target->tuned);
        eval_json_point(&json, &state->task, &state->points[target->point]);
        json_close_object(&json);
    }
    if (options->recall.count) json_close_array(&json);
    if (options->numa.policy) json_numa(&json, &state->numa);
    eval_json_memory(&json, state->memory, state->memory_count);
    json_end(&json);
}

/* "1, 2 processes" */
static void print_procs(const count_list *procs) {
    for (size_t i = 0; i < procs->count; i++)
        printf("%s%zu", i ? ", " : "", procs->values[i]);
    printf(" process%s", procs->count == 1 && procs->values[0] == 1 ? "" : "es");
}

/* The rows below tell an ef, which those that scan do not use; on a processor that cannot scan they walk by it. */
static void print_tuned_heading(double recall, const eval_setting *setting) {
    printf("\nas tuned for recall %.4g, re-ranking %zu", recall, setting->rerank);
    if (setting->probes) printf("; this batch scans %zu partitions", setting->probes);
    if (setting->probes_one) printf("; single queries scan %zu partitions", setting->probes_one);
    if (setting->groups && (setting->probes || setting->probes_one))
        printf(" of the %zu nearest groups", setting->groups);
    putchar('\n');
}

static void print_text(const eval_state *state) {
    const eval_options *options = state->options;
    printf("%s: ", state->index_path);
    print_index(&state->stats);
    printf("%zu queries, ", state->task.nq);
    print_procs(&options->procs);
    printf(" of %zu thread%s, index in %s, tier %s\n\n", options->threads, options->threads == 1 ? "" : "s",
           state->task.place == SL_PLACE_DRAM ? "memory" : "its mapped file", state->stats.isa);
    eval_print_heading(options->k);
    for (size_t i = 0; i < state->count; i++)
        if (is_own(state, &state->points[i])) eval_print_point(&state->task, &state->points[i]);
    for (size_t i = 0; i < options->recall.count; i++) {
        const target *target = &state->targets[i];
        if (target->tuned)
            print_tuned_heading(target->recall, &state->points[target->point].setting);
        else
            printf("\n%s %.4g%s\n", target->reached ? "smallest ef for recall" : "recall", target->recall,
                   target->reached ? "" : " is not reached; the best is");
        eval_print_point(&state->task, &state->points[target->point]);
    }
    eval_print_groups(&state->task, state->points, state->count);
    if (options->numa.policy) {
        putchar('\n');
        print_numa(&state->numa);
    }
    eval_print_memory(state->memory, state->memory_count);
}

/* All ids are the index's, but perhaps not of the vectors that the truth means. */
static void warn_of_truth(const eval_state *state) {
    double best = 0;
    for (size_t i = 0; i < state->count; i++)
        if (state->points[i].recall > best) best = state->points[i].recall;
    if (truth_is_strange(best, state->options->k, state->stats.n))
        report_warning("%s: recall is %.4f at most, which is chance: its ids are not those of %s for these queries and "
                       "this metric; of an index with ids of its own make the truth with 'shortlist truth --ids'",
                       state->truth_path, best, state->index_path);
}

static int plot(const eval_state *state) {
    if (!state->options->plot) return EXIT_DONE;
    char title[256];
    snprintf(title, sizeof title, "%zu vectors of %zu, %s, codes %s, refine %s, m %zu; %zu x %zu threads",
             state->stats.n, state->stats.dim, sl_metric_name(state->stats.metric), sl_codes_name(state->stats.codes),
             sl_refine_name(state->stats.refine), state->stats.m, most_procs(state->options), state->options->threads);
    return eval_plot(state->options->plot, title, &state->task, state->points, state->count);
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
    task->threads = options->threads;
    task->procs = options->procs.values;
    task->groups = options->procs.count;
    task->cpus = (cpu_list){(size_t *)options->pin.values, options->pin.count};
    if (runs_alone(options) || options->pin.count) return EXIT_DONE;
    return cpu_list_allowed(&task->cpus);
}

static int eval(eval_state *state) {
    const eval_options *options = state->options;
    const char *const inputs[] = {state->index_path, state->queries_path, state->truth_path, NULL};
    int status = options->plot ? output_check(options->plot, inputs) : EXIT_DONE;
    /* Processes open the index for themselves; here it is then only asked what it holds. */
    int copies = runs_alone(options) && options->tier != SL_TIER_DRAM;
    state->task.place = options->place >= 0 ? (sl_place)options->place : copies ? SL_PLACE_DRAM : SL_PLACE_MAP;
    opening how = {.place = SL_PLACE_MAP, .tier = SL_TIER_NONE};
    if (runs_alone(options))
        how = (opening){state->task.place, options->numa, options->prefault, (sl_tier)options->tier, options->progress};
    if (status == EXIT_DONE) status = open_index(state->index_path, how, &state->index, &state->stats);
    if (status == EXIT_DONE) status = await_tier(state->index, state->index_path);
    if (status == EXIT_DONE) status = check_options(state);
    if (status == EXIT_DONE) status = load_queries(state);
    if (status == EXIT_DONE) status = load_truth(state);
    if (status == EXIT_DONE) status = prepare_task(state);
    if (status == EXIT_DONE) status = measure(state);
    if (status == EXIT_DONE) status = plot(state);
    if (status != EXIT_DONE) return status;
    if (options->json)
        print_json(state);
    else
        print_text(state);
    warn_of_truth(state);
    return report_stdout();
}

static int run_eval(const command *self, int argc, char **argv) {
    eval_options options = {.threads = 1, .procs = {{1}, 1}, .repeat = 3, .place = -1};
    const char *paths[3];
    OPTIONS_PARSE(self, argc, argv, &options, paths);
    if (options.ef.count && options.recall.count) return report_usage("--ef and --recall exclude one another");
    eval_state state = {.options = &options, .index_path = paths[0], .queries_path = paths[1], .truth_path = paths[2]};
    int status = eval(&state);
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
     "Instead of --ef: recalls to reach, such as 0.9,0.95,0.99. For each the settings that 'shortlist tune' stored in "
     "the index are measured; without such, or with --rerank, the smallest ef that reaches it on these "
     "queries is found and measured; the points passed on the way are told above, measured by one pass each. A recall "
     "is "
     "given up where searching twice and four times as deep finds nothing more."},
    OPTION_THREADS(eval_options, "Threads that ask, each one query at a time (default 1)."),
    {0, "procs", OPTION_COUNTS, "LIST", 0, offsetof(eval_options, procs),
     "Processes, each of --threads threads, each opening the index for itself and asking all queries, started together "
     "on CPUs of their own (default 1: the command itself). queries/s is that of all together while all are at work. "
     "With several numbers, such as 1,2, each round gives each of them its turn, and the ratios between them are told; "
     "the figures of a depth are those of the last. More processes than CPUs need --pin."},
    {0, "pin", OPTION_COUNTS, "LIST", 0, offsetof(eval_options, pin),
     "CPUs to run the threads on, in turn. Without it one process's threads run where the system puts them; numactl "
     "and taskset work as for any program."},
    {0, "place", OPTION_WORD, "dram|map|pmem", 0, offsetof(eval_options, place),
     "Copy the index into memory, which is safe from a file that is cut short (default for one process), or map its "
     "file (default with --procs, which share it, "
     "and with --tier dram, which is of a mapped one)."},
    OPTION_PLACE_NODES(eval_options),
    OPTION_PREFAULT(eval_options),
    OPTION_TIER(eval_options),
    {0, "rerank", OPTION_COUNT, "N", 0, offsetof(eval_options, rerank),
     "Candidates the refine copy re-ranks; 0 (default) chooses from -k and ef."},
    {0, "repeat", OPTION_COUNT, "N", 0, offsetof(eval_options, repeat),
     "Passes over the queries for each figure, of which the median is told (default 3)."},
    {0, "plot", OPTION_TEXT, "F.svg", 0, offsetof(eval_options, plot),
     "Draw queries a second over recall into this SVG file."},
    OPTION_PROGRESS(eval_options),
    OPTION_JSON(eval_options),
    OPTION_LAST};

const command command_eval = {
    .name = "eval",
    .summary = "measure recall and speed against ground truth",
    .synopsis =
        "shortlist eval INDEX QUERIES TRUTH.ibin -k N [--ef LIST | --recall LIST] [--threads N] [--procs LIST] "
        "[--pin LIST] [--place dram|map|pmem] [--numa interleave|bind:N|local] [--prefault] [--tier auto|none|dram] "
        "[--rerank N] [--repeat N] [--plot F.svg] [--progress] [--json]",
    .description =
        "At each depth asks every query, one a call, and prints recall, queries a second, the 50th, 99th and 99.9th "
        "percentile of a query's time, and the distances computed for it; and asks all queries in one call, which is "
        "free to work on several at once, for the queries a second in batch and their recall, which is another where a "
        "batch scans. Recall is the share of the true -k nearest among those returned, averaged over the queries; "
        "TRUTH.ibin holds the ids of the true ones, best "
        "first, at least -k a row, as 'shortlist truth' writes them (of an index with ids of its own: 'shortlist truth "
        "--ids'); one that INDEX lacks is refused. A pass that warms the caches goes first, and a "
        "tier in memory is waited for. At the "
        "end it tells the memory that the measuring process holds, or with --procs one of them alone and all together: "
        "their proportional shares (PSS), in which a page held by two counts half for each. "
        "With --numa also on which memory nodes the pages of layer 0 lie, as the first process has them.\n"
        "Vector files are " VECTORS_READ_ENDINGS "; of an .hdf5 file the dataset test gives QUERIES and neighbors the "
        "truth.\n",
    .examples = "shortlist eval base.sl queries.fbin truth.ibin -k 10\n"
                "shortlist eval base.sl queries.fbin truth.ibin -k 10 --recall 0.9,0.95,0.99 --pin 1 --json\n"
                "shortlist eval base.sl queries.fbin truth.ibin -k 10 --procs 1,8 --plot eval.svg\n",
    .operands = operands,
    .options = eval_table,
    .run = run_eval,
};
