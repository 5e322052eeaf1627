#include "cli/commands.h"

#include "cli/eval.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/vectors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct eval_options {
    count_list ef, pin;
    fraction_list recall;
    const char *plot;
    size_t k, rerank, threads, procs, repeat;
    int place; /* -1: DRAM for one process, the mapped file for several */
    int progress, json;
} eval_options;

/* What --recall found for one target. */
typedef struct target {
    double recall;
    size_t point; /* number in points */
    int reached;
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
} eval_state;

static int compare_ids(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Brings the first k columns of the truth into the task's form. */
static int take_truth(eval_state *state, const uint64_t *rows, const vectors *file) {
    size_t k = state->options->k, nq = file->n;
    state->truth = allocate(nq, k * sizeof *state->truth);
    if (!state->truth) return EXIT_FAILED;
    for (size_t q = 0; q < nq; q++) {
        uint64_t *row = state->truth + q * k;
        memcpy(row, rows + q * file->dim, k * sizeof *row);
        for (size_t i = 0; i < k; i++)
            /* -1 marks a missing neighbour; a narrower file's was widened with its sign. */
            if (row[i] == SL_NO_ID || (file->type != ELEMENT_U64 && row[i] > INT64_MAX))
                return report_failure(
                    "%s, row %zu: only %zu neighbours, -k is %zu; make the truth for this -k again, or "
                    "ask for fewer",
                    file->path, q, i, k);
        qsort(row, k, sizeof *row, compare_ids);
    }
    return EXIT_DONE;
}

static int load_truth(eval_state *state) {
    vectors *file;
    size_t k = state->options->k;
    int status = vectors_open(state->truth_path, VECTORS_TRUTH, &file);
    if (status != EXIT_DONE) return status;
    if (element_is_float(file->type))
        status = report_failure("%s: holds %s, but ground truth is ids; make it with 'shortlist truth'", file->path,
                                element_name(file->type));
    else if (file->n != state->queries->n)
        status = report_failure("%s: holds %zu rows for the %zu queries of %s; make the truth of these queries",
                                file->path, file->n, state->queries->n, state->queries_path);
    else if (file->dim < k)
        status =
            report_failure("%s: holds %zu neighbours a query, -k is %zu; make it again with -k %zu, or ask for fewer",
                           file->path, file->dim, k, k);
    if (status == EXIT_DONE) {
        uint64_t *rows = vectors_read_all(file, file->type == ELEMENT_U64 ? ELEMENT_U64 : ELEMENT_I64);
        status = rows ? take_truth(state, rows, file) : EXIT_FAILED;
        free(rows);
    }
    vectors_close(file);
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

static int check_options(const eval_state *state) {
    const eval_options *options = state->options;
    int status = check_depth("-k", options->k, state->stats.n, state->index_path);
    for (size_t i = 0; status == EXIT_DONE && i < options->ef.count; i++)
        status = check_depth("--ef", options->ef.values[i], state->stats.n, state->index_path);
    if (status == EXIT_DONE) status = check_count("--threads", options->threads, 4096);
    if (status == EXIT_DONE) status = check_count("--procs", options->procs, 4096);
    if (status == EXIT_DONE) status = check_count("--repeat", options->repeat, 1000);
    return status;
}

/* The point of this ef, measured if that was not done yet. NULL, reported, on failure. */
static eval_point *point_of(eval_state *state, size_t ef, size_t repeat) {
    size_t at = 0;
    while (at < state->count && state->points[at].ef < ef)
        at++;
    if (at < state->count && state->points[at].ef == ef) return &state->points[at];
    if (state->count == state->room) {
        size_t room = state->room ? 2 * state->room : 64;
        eval_point *larger = allocate(room, sizeof *larger);
        if (!larger) return NULL;
        if (state->count) memcpy(larger, state->points, state->count * sizeof *larger);
        free(state->points);
        state->points = larger;
        state->room = room;
    }
    eval_point point;
    if (eval_measure(state->runner, ef, repeat, &point) != EXIT_DONE) return NULL;
    memmove(state->points + at + 1, state->points + at, (state->count - at) * sizeof *state->points);
    state->points[at] = point;
    state->count++;
    return &state->points[at];
}

/* The smallest depth of the best recall measured. */
static size_t best_ef(const eval_state *state) {
    const eval_point *best = &state->points[0];
    for (size_t i = 1; i < state->count; i++)
        if (state->points[i].recall > best->recall) best = &state->points[i];
    return best->ef;
}

/* A depth that reaches the recall, by doubling: *below fails (or is k - 1), *ef does not. *ef is 0 where the recall is
 * out of reach: the largest depth fails, or twice twice as deep a search found nothing more. */
static int bracket_ef(eval_state *state, double recall, size_t *below, size_t *ef) {
    size_t largest = largest_ef(state), stalls = 0;
    double last = -1;
    *below = state->options->k - 1;
    for (*ef = state->options->k;; *ef = *ef < largest / 2 ? 2 * *ef : largest) {
        const eval_point *point = point_of(state, *ef, 1);
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
            const eval_point *point = point_of(state, middle, 1);
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

/* Finds the depths by single passes, then measures what was found in full. */
static int measure_targets(eval_state *state) {
    const fraction_list *recall = &state->options->recall;
    size_t found[OPTION_LIST_MAX];
    int status = EXIT_DONE;
    for (size_t i = 0; status == EXIT_DONE && i < recall->count; i++) {
        status = find_ef(state, recall->values[i], &found[i]);
        progress_step(&state->progress, i + 1, recall->count + 1);
    }
    for (size_t i = 0; status == EXIT_DONE && i < recall->count; i++) {
        eval_point *point = point_of(state, found[i], 1);
        status = point ? eval_measure(state->runner, found[i], state->options->repeat, point) : EXIT_FAILED;
        if (status != EXIT_DONE) break;
        state->targets[i] =
            (target){recall->values[i], (size_t)(point - state->points), point->recall >= recall->values[i]};
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
        if (!point_of(state, ef, state->options->repeat)) return EXIT_FAILED;
        progress_step(&state->progress, i + 1, count);
    }
    return EXIT_DONE;
}

static int measure(eval_state *state) {
    const eval_options *options = state->options;
    eval_point warm;
    int status = eval_runner_create(&state->task, state->index, &state->runner);
    progress_begin(&state->progress, "measuring", "settings",
                   options->recall.count ? options->recall.count + 1 : options->ef.count, options->progress);
    /* Brings the index and the code into the caches. */
    if (status == EXIT_DONE) status = eval_measure(state->runner, options->k, 1, &warm);
    if (status == EXIT_DONE) status = options->recall.count ? measure_targets(state) : measure_list(state);
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
    json_count(&json, "procs", options->procs);
    json_count(&json, "repeat", options->repeat);
    json_open_array(&json, "points");
    for (size_t i = 0; i < state->count; i++) {
        const eval_point *point = &state->points[i];
        json_open_object(&json, NULL);
        json_count(&json, "ef", point->ef);
        json_real(&json, "recall", point->recall);
        json_real(&json, "qps", point->qps);
        json_real(&json, "p50_us", point->p50_us);
        json_real(&json, "p99_us", point->p99_us);
        json_real(&json, "evaluations", point->evaluations);
        json_close_object(&json);
    }
    json_close_array(&json);
    if (options->recall.count) json_open_array(&json, "at");
    for (size_t i = 0; i < options->recall.count; i++) {
        const target *target = &state->targets[i];
        const eval_point *point = &state->points[target->point];
        json_open_object(&json, NULL);
        json_real(&json, "target", target->recall);
        json_flag(&json, "reached", target->reached);
        json_real(&json, "recall", point->recall);
        json_count(&json, "ef", point->ef);
        json_real(&json, "qps", point->qps);
        json_real(&json, "p50_us", point->p50_us);
        json_real(&json, "p99_us", point->p99_us);
        json_real(&json, "evaluations", point->evaluations);
        json_close_object(&json);
    }
    if (options->recall.count) json_close_array(&json);
    json_end(&json);
}

static void print_point(const eval_point *point) {
    printf("%7zu  %9.4f  %10.0f  %9.1f  %9.1f  %11.0f\n", point->ef, point->recall, point->qps, point->p50_us,
           point->p99_us, point->evaluations);
}

static void print_text(const eval_state *state) {
    const eval_options *options = state->options;
    printf("%s: ", state->index_path);
    print_index(&state->stats);
    printf("%zu queries one at a time, %zu process%s of %zu thread%s, index in %s, tier %s\n\n", state->task.nq,
           options->procs, options->procs == 1 ? "" : "es", options->threads, options->threads == 1 ? "" : "s",
           state->task.place == SL_PLACE_DRAM ? "memory" : "its mapped file", state->stats.isa);
    char heading[32];
    snprintf(heading, sizeof heading, "recall@%zu", options->k);
    printf("%7s  %9s  %10s  %9s  %9s  %11s\n", "ef", heading, "queries/s", "p50 us", "p99 us", "evaluations");
    for (size_t i = 0; i < state->count; i++)
        print_point(&state->points[i]);
    for (size_t i = 0; i < options->recall.count; i++) {
        const target *target = &state->targets[i];
        printf("\n%s %.4g%s\n", target->reached ? "smallest ef for recall" : "recall", target->recall,
               target->reached ? "" : " is not reached; the best is");
        print_point(&state->points[target->point]);
    }
}

static int plot(const eval_state *state) {
    if (!state->options->plot) return EXIT_DONE;
    char title[256];
    snprintf(title, sizeof title, "%zu vectors of %zu, %s, codes %s, refine %s, m %zu; %zu x %zu threads",
             state->stats.n, state->stats.dim, sl_metric_name(state->stats.metric), sl_codes_name(state->stats.codes),
             sl_refine_name(state->stats.refine), state->stats.m, state->options->procs, state->options->threads);
    return eval_plot(state->options->plot, title, state->options->k, state->points, state->count);
}

static int prepare_task(eval_state *state) {
    const eval_options *options = state->options;
    eval_task *task = &state->task;
    task->index_path = state->index_path;
    task->queries_path = state->queries_path;
    task->k = options->k;
    task->rerank = options->rerank;
    task->truth = state->truth;
    task->threads = options->threads;
    task->procs = options->procs;
    task->max_ef = largest_ef(state);
    task->cpus = (cpu_list){(size_t *)options->pin.values, options->pin.count};
    if (options->procs == 1 || options->pin.count) return EXIT_DONE;
    return cpu_list_allowed(&task->cpus);
}

static int eval(eval_state *state) {
    const eval_options *options = state->options;
    const char *const inputs[] = {state->index_path, state->queries_path, state->truth_path, NULL};
    int status = options->plot ? output_check(options->plot, inputs) : EXIT_DONE;
    /* Processes open the index for themselves; here it is then only asked what it holds. */
    state->task.place = options->place >= 0   ? (sl_place)options->place
                        : options->procs == 1 ? SL_PLACE_DRAM
                                              : SL_PLACE_MAP;
    sl_place place = options->procs == 1 ? state->task.place : SL_PLACE_MAP;
    if (status == EXIT_DONE)
        status = open_index(state->index_path, place, options->progress, &state->index, &state->stats);
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
    return report_stdout();
}

static int run_eval(const command *self, int argc, char **argv) {
    eval_options options = {.threads = 1, .procs = 1, .repeat = 3, .place = -1};
    const char *paths[3];
    OPTIONS_PARSE(self, argc, argv, &options, paths);
    if (options.ef.count && options.recall.count) return report_usage("--ef and --recall exclude one another");
    eval_state state = {.options = &options, .index_path = paths[0], .queries_path = paths[1], .truth_path = paths[2]};
    int status = eval(&state);
    eval_runner_free(state.runner);
    if (state.task.cpus.cpus != options.pin.values) free(state.task.cpus.cpus);
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
     "Instead of --ef: recalls to reach, such as 0.9,0.95,0.99. For each the smallest ef that reaches it on these "
     "queries is found and measured; the points passed on the way are told too, measured by one pass each. A recall is "
     "given up where searching twice and four times as deep finds nothing more."},
    OPTION_THREADS(eval_options, "Threads that ask, each one query at a time (default 1)."),
    {0, "procs", OPTION_COUNT, "N", 0, offsetof(eval_options, procs),
     "Processes, each of --threads threads, each opening the index for itself and asking all queries, started together "
     "on CPUs of their own (default 1). queries/s is their sum."},
    {0, "pin", OPTION_COUNTS, "LIST", 0, offsetof(eval_options, pin),
     "CPUs to run the threads on, in turn. Without it one process's threads run where the system puts them; numactl "
     "and taskset work as for any program."},
    {0, "place", OPTION_WORD, "dram|map|pmem", 0, offsetof(eval_options, place),
     "Copy the index into memory (default for one process), or map its file (default with --procs), which the "
     "processes then share."},
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
    .synopsis = "shortlist eval INDEX QUERIES TRUTH.ibin -k N [--ef LIST | --recall LIST] [--threads N] [--procs N] "
                "[--pin LIST] [--place dram|map] [--rerank N] [--repeat N] [--plot F.svg] [--progress] [--json]",
    .description =
        "Asks every query, one a call, at each depth, and prints recall, queries a second, the median and the 99th "
        "percentile of a query's time, and the distances computed for it. Recall is the share of the true -k nearest "
        "among those returned, averaged over the queries; TRUTH.ibin holds the ids of the true ones, best first, at "
        "least -k a row, as 'shortlist truth' writes them. A pass that warms the caches goes first.\n"
        "Vector files are " VECTORS_READ_ENDINGS "; of an .hdf5 file the dataset test gives QUERIES and neighbors the "
        "truth.\n",
    .examples = "shortlist eval base.sl queries.fbin truth.ibin -k 10\n"
                "shortlist eval base.sl queries.fbin truth.ibin -k 10 --recall 0.9,0.95,0.99 --pin 1 --json\n"
                "shortlist eval base.sl queries.fbin truth.ibin -k 10 --procs 8 --plot eval.svg\n",
    .operands = operands,
    .options = eval_table,
    .run = run_eval,
};
