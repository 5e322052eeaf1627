/* `eval`: recall and speed of searches that the ranks make together. */
#include "cli/common/clock.h"
#include "cli/common/interrupt.h"
#include "cli/common/json_out.h"
#include "cli/common/percentiles.h"
#include "cli/common/report.h"
#include "cli/files/truth.h"
#include "cli/index/description.h"
#include "cli/search/eval_state.h"
#include "cli/search/search_totals.h"
#include "cluster/commands/commands.h"
#include "cluster/commands/ranks.h"
#include "cluster/commands/searched.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Figures of a split's search, per query, for one ef. */
typedef struct split_figures {
    size_t ef;
    double asked, routing, messages, bytes;
} split_figures;

typedef struct job_eval {
    eval_options options;
    split_choice split;
    split_figures figures[256]; /* of the points of a split, in the order of their measuring */
    size_t figure_count;
    eval_state state; /* of all queries, alike on every rank */
    searched searched;
    eval_task task;        /* of this rank's share of the queries */
    eval_threads *threads; /* NULL: no queries */
    eval_gate gate;
    float *latencies; /* of this rank's queries */
    uint64_t *ids;    /* of a split: their results */
    float *scores;
} job_eval;

/* Figures of a pass on all ranks. */
typedef struct pass {
    double seconds, recall, p50, p99, p999;
    sl_search_stats counts;
} pass;

/* Sums the ranks' hits and counts. */
static sl_status sum_pass(const job_eval *job, const eval_pass *mine, pass *out) {
    const eval_task *all = &job->state.task;
    uint64_t sums[4] = {(uint64_t)llround(mine->recall * (double)job->task.nq * (double)all->wanted),
                        mine->counts.results, mine->counts.evaluations, mine->counts.expansions};
    SL_TRY(sl_comm_sum_counts(ranks(), sums, 4));
    out->recall = (double)sums[0] / ((double)all->nq * (double)all->wanted);
    out->counts.results = sums[1];
    out->counts.evaluations = sums[2];
    out->counts.expansions = sums[3];
    return SL_OK;
}

/* Gathers the latencies of all queries. */
static sl_status gather_latencies(const job_eval *job, pass *out) {
    const sl_allocator allocator = sl_allocator_of(NULL);
    sl_parts parts;
    sl_status status =
        sl_comm_gather_parts(ranks(), job->latencies, job->task.nq * sizeof *job->latencies, &allocator, &parts);
    if (status == SL_OK) percentiles((float *)(void *)parts.data, job->state.task.nq, &out->p50, &out->p99, &out->p999);
    sl_parts_free(&parts);
    return status;
}

static size_t common_ids(const uint64_t *truth, const uint64_t *found, size_t k) {
    size_t hits = 0;
    for (size_t i = 0; i < k; i++)
        hits += bsearch(&found[i], truth, k, sizeof *truth, compare_ids) != NULL;
    return hits;
}

/* The largest recall to reach; 0: none is given. */
static double largest_recall(const eval_options *options) {
    double largest = 0;
    for (size_t i = 0; i < options->recall.count; i++)
        if (options->recall.values[i] > largest) largest = options->recall.values[i];
    return largest;
}

/* Searches the split once for this rank's queries, with the other ranks. */
static sl_status search_split(job_eval *job, eval_setting setting, eval_pass *mine, sl_split_counts *counts) {
    const eval_task *task = &job->task;
    const sl_split_params params =
        split_choice_params(&job->split, &job->searched, task->k, setting.ef, largest_recall(&job->options));
    size_t hits = 0;
    const sl_split_queries queries = {.rows = task->queries, .dtype = task->dtype, .count = task->nq};
    const sl_split_results out = {
        .ids = job->ids, .scores = job->scores, .latencies = job->latencies, .counts = counts};
    SL_TRY(sl_split_search(job->searched.split, &params, &queries, &out));
    for (size_t q = 0; q < task->nq; q++)
        hits += common_ids(task->truth + q * task->k, job->ids + q * task->k, task->k);
    mine->recall = task->nq ? (double)hits / ((double)task->nq * (double)task->k) : 0;
    mine->counts.results = counts->results;
    mine->counts.evaluations = counts->evaluations;
    return SL_OK;
}

/* Notes what a split's search cost, for the printing. */
static sl_status note_figures(job_eval *job, size_t ef, const sl_split_counts *counts, const sl_comm_counts *before) {
    const sl_comm_counts after = sl_comm_counted(ranks());
    const double nq = (double)job->state.task.nq;
    uint64_t sums[4] = {counts->asked, counts->routing, after.messages - before->messages, after.bytes - before->bytes};
    SL_TRY(sl_comm_sum_counts(ranks(), sums, 4));
    if (job->figure_count == sizeof job->figures / sizeof *job->figures) job->figure_count--;
    job->figures[job->figure_count++] = (split_figures){.ef = ef,
                                                        .asked = (double)sums[0] / nq,
                                                        .routing = (double)sums[1] / nq,
                                                        .messages = (double)sums[2] / nq,
                                                        .bytes = (double)sums[3] / nq};
    return SL_OK;
}

/* As run_pass, in a split. */
static int run_split_pass(job_eval *job, eval_setting setting, pass *out) {
    eval_pass mine = {0};
    sl_split_counts counts = {.results = 0};
    const int told = ranks_agree(interrupted() ? report_interrupted() : EXIT_DONE);
    if (told != EXIT_DONE) return told;
    sl_status status = sl_comm_barrier(ranks());
    const sl_comm_counts before = sl_comm_counted(ranks());
    const double start = now_seconds();
    if (status == SL_OK) status = search_split(job, setting, &mine, &counts);
    if (status == SL_OK) status = sl_comm_barrier(ranks());
    out->seconds = now_seconds() - start;
    if (status == SL_OK) status = note_figures(job, setting.ef, &counts, &before);
    if (status == SL_OK) status = sum_pass(job, &mine, out);
    if (status == SL_OK) status = gather_latencies(job, out);
    return status == SL_OK ? EXIT_DONE : ranks_report(status);
}

/* Runs all queries once, each rank its share, between two barriers. */
static int run_pass(job_eval *job, eval_setting setting, int batch, pass *out) {
    eval_pass mine = {0};
    int result = EXIT_DONE;
    if (job->split.stop > 0) setting.stop = job->split.stop;
    atomic_store(&job->gate.arrived, 0);
    atomic_store(&job->gate.finished, 0);
    sl_status status = sl_comm_barrier(ranks());
    const double start = now_seconds();
    if (status == SL_OK && job->threads)
        result = eval_threads_pass(job->threads, setting, &job->gate, batch ? NULL : job->latencies, &mine);
    if (status == SL_OK) status = sl_comm_barrier(ranks());
    out->seconds = now_seconds() - start;
    if (status != SL_OK) return ranks_report(status);
    result = ranks_agree(result);
    if (result != EXIT_DONE) return result;
    status = sum_pass(job, &mine, out);
    if (status == SL_OK && !batch) status = gather_latencies(job, out);
    return status == SL_OK ? EXIT_DONE : ranks_report(status);
}

static double rate_of(const job_eval *job, const pass *pass) {
    return pass->seconds > 0 ? (double)job->state.task.nq / pass->seconds : 0;
}

/* Measures one round into samples[figure * rounds + round]. */
static int measure_round(job_eval *job, int batch, double *samples, size_t rounds, eval_point *point) {
    pass single = {0}, joint = {0};
    const int split = job->searched.split != NULL;
    int status = split ? run_split_pass(job, point->setting, &single) : run_pass(job, point->setting, 0, &single);
    batch = batch && !split;
    if (status == EXIT_DONE && batch) status = run_pass(job, point->setting, 1, &joint);
    point->recall = single.recall;
    point->counts = single.counts;
    point->batch_recall = batch ? joint.recall : (double)NAN;
    samples[EVAL_QPS * rounds] = rate_of(job, &single);
    samples[EVAL_BATCH_QPS * rounds] = batch ? rate_of(job, &joint) : (double)NAN;
    samples[EVAL_P50 * rounds] = single.p50;
    samples[EVAL_P99 * rounds] = single.p99;
    samples[EVAL_P999 * rounds] = single.p999;
    return status;
}

/* Measures a setting on all ranks: eval_state.measure. */
static int measure(void *ctx, eval_setting setting, size_t repeat, eval_point *point) {
    job_eval *job = ctx;
    const size_t rounds = repeat ? repeat : 1;
    eval_point measured = {.setting = setting, .groups = eval_groups_create(&job->state.task)};
    double *samples = allocate(EVAL_FIGURES, rounds * sizeof *samples);
    int status = ranks_agree(measured.groups && samples ? EXIT_DONE : EXIT_FAILED);
    for (size_t i = 0; status == EXIT_DONE && i < rounds; i++)
        status = measure_round(job, repeat > 0, samples + i, rounds, &measured);
    if (status == EXIT_DONE) {
        for (size_t f = 0; f < EVAL_FIGURES; f++)
            measured.groups->figures[f] = median(samples + f * rounds, rounds);
        free(point->groups);
        *point = measured;
    } else
        free(measured.groups);
    free(samples);
    return status;
}

/* Loads the truth of all queries, each row in rising order. Rank 0 looks the ids up in the index. */
static int load_truth(job_eval *job) {
    eval_state *state = &job->state;
    int status = truth_load(state->truth_path, state->queries, job->options.k, NULL, &state->truth);
    if (status == EXIT_DONE && ranks()->rank == 0 && state->index)
        status = truth_check_ids(state->truth_path, state->index_path, state->index, state->truth, state->queries->n,
                                 job->options.k);
    for (size_t q = 0; status == EXIT_DONE && q < state->queries->n; q++)
        qsort(state->truth + q * job->options.k, job->options.k, sizeof *state->truth, compare_ids);
    return status;
}

/* Reads this rank's share of the queries, and makes its threads. */
static int prepare_share(job_eval *job, element type) {
    eval_state *state = &job->state;
    const sl_comm *comm = ranks();
    const size_t first = sl_comm_share(state->queries->n, comm->rank, comm->ranks);
    state->task.k = state->task.wanted = job->options.k;
    state->task.nq = state->queries->n;
    job->task = state->task;
    job->task.nq = sl_comm_share(state->queries->n, comm->rank + 1, comm->ranks) - first;
    job->task.row = state->queries->dim * element_size(type);
    job->task.dtype = element_dtype(type);
    job->task.truth = state->truth + first * job->options.k;
    job->task.queries = state->rows = allocate(job->task.nq, job->task.row);
    job->latencies = allocate(job->task.nq, sizeof *job->latencies);
    job->gate.procs = 1;
    job->ids = allocate(job->task.nq, job->task.k * sizeof *job->ids);
    job->scores = allocate(job->task.nq, job->task.k * sizeof *job->scores);
    if (!state->rows || !job->latencies || !job->ids || !job->scores) return EXIT_FAILED;
    if (!job->task.nq) return EXIT_DONE;
    int status = searched_read_queries(&job->searched, state->queries, first, job->task.nq, type, state->rows);
    return status == EXIT_DONE && state->index ? eval_threads_create(&job->task, state->index, 0, &job->threads)
                                               : status;
}

static int check_options(const job_eval *job) {
    const eval_options *options = &job->options;
    const eval_state *state = &job->state;
    int status = check_depth("-k", options->k, state->stats.n, state->index_path);
    for (size_t i = 0; status == EXIT_DONE && i < options->ef.count; i++)
        status = check_depth("--ef", options->ef.values[i], state->stats.n, state->index_path);
    if (status == EXIT_DONE && (options->threads == 0 || options->threads > SL_MAX_THREADS))
        status = report_failure("--threads is %zu; ask for 1 to %u", options->threads, SL_MAX_THREADS);
    if (status == EXIT_DONE && (options->repeat == 0 || options->repeat > 1000))
        status = report_failure("--repeat is %zu; ask for 1 to 1000", options->repeat);
    return status == EXIT_DONE ? split_choice_check(&job->split) : status;
}

static const split_figures *figures_of(const job_eval *job, const eval_point *point) {
    size_t i = job->figure_count;
    while (i > 0 && job->figures[i - 1].ef != point->setting.ef)
        i--;
    return i ? &job->figures[i - 1] : NULL;
}

static void json_point(json *json, const job_eval *job, const eval_point *point) {
    const split_figures *figures = figures_of(job, point);
    eval_json_point(json, &job->state.task, point);
    if (!figures) return;
    json_real(json, "asked", figures->asked);
    json_real(json, "routing", figures->routing);
    json_real(json, "messages", figures->messages);
    json_real(json, "bytes", figures->bytes);
}

static void print_point(const job_eval *job, const eval_point *point) {
    const split_figures *figures = figures_of(job, point);
    eval_print_point(&job->state.task, point);
    if (figures)
        printf("         parts asked %.3f, centres compared %.0f, messages %.2f, bytes %.0f per query\n",
               figures->asked, figures->routing, figures->messages, figures->bytes);
}

static void json_split(json *json, const job_eval *job) {
    const sl_split_facts *facts = &sl_split_searcher_split(job->searched.split)->facts;
    json_count(json, "n", facts->n);
    json_count(json, "dim", facts->dim);
    json_text(json, "metric", sl_metric_name((sl_metric)facts->metric));
    json_text(json, "split", facts->kind == SL_SPLIT_SLICES ? "slices" : "neighbourhoods");
    json_count(json, "parts", facts->parts);
    json_real(json, "replication", (double)facts->stored / (double)facts->n - 1);
    json_count(json, "batch", job->split.batch);
}

static void print_json(const job_eval *job) {
    const eval_state *state = &job->state;
    json json;
    json_begin(&json, stdout);
    json_text(&json, "index", state->index_path);
    if (state->index)
        json_index(&json, &state->stats);
    else
        json_split(&json, job);
    json_text(&json, "place", sl_place_name((sl_place)job->options.place));
    json_count(&json, "k", job->options.k);
    json_count(&json, "queries", state->task.nq);
    json_count(&json, "ranks", ranks()->ranks);
    json_count(&json, "threads", job->options.threads);
    json_count(&json, "repeat", job->options.repeat);
    json_open_array(&json, "points");
    for (size_t i = 0; i < state->count; i++) {
        json_open_object(&json, NULL);
        json_point(&json, job, &state->points[i]);
        json_close_object(&json);
    }
    json_close_array(&json);
    if (job->options.recall.count) json_open_array(&json, "at");
    for (size_t i = 0; i < job->options.recall.count; i++) {
        const eval_target *target = &state->targets[i];
        json_open_object(&json, NULL);
        json_real(&json, "target", target->recall);
        json_flag(&json, "reached", target->reached);
        json_flag(&json, "tuned", target->tuned);
        json_point(&json, job, &state->points[target->point]);
        json_close_object(&json);
    }
    if (job->options.recall.count) json_close_array(&json);
    json_end(&json);
}

static void print_text(const job_eval *job) {
    const eval_state *state = &job->state;
    const sl_split_facts *facts = state->index ? NULL : &sl_split_searcher_split(job->searched.split)->facts;
    printf("%s: ", state->index_path);
    if (state->index)
        print_index(&state->stats);
    else
        printf("%llu vectors of %u, %s, in %u %s\n", (unsigned long long)facts->n, facts->dim,
               sl_metric_name((sl_metric)facts->metric), facts->parts,
               facts->kind == SL_SPLIT_SLICES ? "slices" : "neighbourhoods");
    printf("%zu queries, %zu ranks of %zu thread%s\n\n", state->task.nq, ranks()->ranks, job->options.threads,
           job->options.threads == 1 ? "" : "s");
    eval_print_heading(&state->task);
    for (size_t i = 0; i < state->count; i++)
        print_point(job, &state->points[i]);
    for (size_t i = 0; i < job->options.recall.count; i++) {
        const eval_target *target = &state->targets[i];
        printf("\n%s %.4g%s\n",
               target->tuned     ? "as tuned for recall"
               : target->reached ? "smallest ef for recall"
                                 : "recall",
               target->recall, target->tuned || target->reached ? "" : " is not reached; the best is");
        print_point(job, &state->points[target->point]);
    }
}

static int evaluate(job_eval *job) {
    eval_state *state = &job->state;
    element type = ELEMENT_F32;
    int status = ranks_agree(check_options(job));
    if (status == EXIT_DONE)
        status = searched_open_queries(&job->searched, state->queries_path, &state->queries, &type);
    if (status == EXIT_DONE) status = ranks_agree(load_truth(job));
    if (status == EXIT_DONE)
        status = ranks_check_same("truth", state->truth, state->queries->n * job->options.k * sizeof *state->truth);
    if (status == EXIT_DONE) status = ranks_agree(prepare_share(job, type));
    if (status == EXIT_DONE) status = ranks_agree(eval_sweep(state));
    if (status != EXIT_DONE || ranks()->rank != 0) return status;
    if (job->options.json)
        print_json(job);
    else
        print_text(job);
    return report_stdout();
}

static int run_eval(const command *self, int argc, char **argv) {
    static const size_t one = 1;
    job_eval job = {.options = {.threads = 1, .repeat = 3, .place = SL_PLACE_MAP}, .split = SPLIT_CHOICE_DEFAULT};
    const char *paths[3];
    OPTIONS_PARSE(self, argc, argv, &job, paths);
    if (job.options.ef.count && job.options.recall.count) return report_usage("--ef and --recall exclude one another");
    if (ranks()->rank != 0) job.options.progress = 0;
    eval_state *state = &job.state;
    *state = (eval_state){.options = &job.options,
                          .index_path = paths[0],
                          .queries_path = paths[1],
                          .truth_path = paths[2],
                          .task = {.index_path = paths[0],
                                   .queries_path = paths[1],
                                   .threads = job.options.threads,
                                   .procs = &one,
                                   .groups = 1},
                          .measure = measure,
                          .measure_ctx = &job};
    int status = searched_open(paths[0], job.options.place, job.options.threads, &job.searched);
    state->index = job.searched.index;
    state->stats = job.searched.stats;
    if (status == EXIT_DONE) status = evaluate(&job);
    eval_threads_free(job.threads);
    for (size_t i = 0; i < state->count; i++)
        free(state->points[i].groups);
    free(state->points);
    free(state->truth);
    free(state->rows);
    free(job.latencies);
    free(job.ids);
    free(job.scores);
    vectors_close(state->queries);
    searched_close(&job.searched);
    return status;
}

static const char *const operands[] = {"INDEX|DIR", "QUERIES", "TRUTH.ibin", NULL};

/* The options of both structs are offsets in job_eval. */
static_assert(offsetof(job_eval, options) == 0, "job_eval.options");

static const option eval_table[] = {
    {'k', NULL, OPTION_COUNT, "N", 1, offsetof(eval_options, k), "Neighbours per query."},
    {0, "ef", OPTION_COUNTS, "LIST", 0, offsetof(eval_options, ef),
     "Depths to measure, such as 16,32,64 (default: a ladder from 10 to 1024). A depth below -k counts as -k."},
    {0, "recall", OPTION_FRACTIONS, "LIST", 0, offsetof(eval_options, recall),
     "Recalls to reach, as of 'shortlist eval': by stored settings, or else by the smallest ef."},
    {0, "repeat", OPTION_COUNT, "N", 0, offsetof(eval_options, repeat),
     "Passes over the queries for each figure; the median is printed (default 3)."},
    OPTIONS_SPLIT(job_eval),
    OPTION_SEARCH_PLACE(eval_options),
    OPTION_THREADS(eval_options, "Threads of each rank, each asking one query at a time (default 1)."),
    OPTION_PROGRESS(eval_options),
    OPTION_JSON(eval_options),
    OPTION_LAST};

const command command_cluster_eval = {
    .name = "eval",
    .summary = "measure recall and speed of searches by all ranks",
    .synopsis =
        "mpirun -np N shortlist-mpi eval INDEX|DIR QUERIES TRUTH.ibin -k N [--ef LIST | --recall LIST] [--stop X] "
        "[--cover SHARE] [--batch N] [--repeat N] [--place dram|map] [--threads N] [--progress] [--json]",
    .description =
        "Every rank opens the same INDEX and searches its share of the queries. queries/s counts all queries between "
        "two barriers of all ranks. Recall, evaluations and percentiles are over all queries. The names of --json are "
        "those of 'shortlist eval'.\nDIR is a split, made by 'shortlist-mpi split'. Evaluations then count those of "
        "all "
        "parts asked and the centres compared on the way. Also prints the parts asked, the centres compared, and the "
        "messages and bytes that the ranks sent, per query. A query's time is that of its batch.\n",
    .examples = "mpirun -np 4 shortlist-mpi eval base.sl queries.fbin truth.ibin -k 10 --recall 0.95\n",
    .operands = operands,
    .options = eval_table,
    .run = run_eval,
};
