/* `truth`: the true neighbours in a base that the ranks read in parts. */
#include "cli/common/clock.h"
#include "cli/common/json_out.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/files/ids.h"
#include "cli/files/results.h"
#include "cli/search/truth_scan.h"
#include "cluster/commands/commands.h"
#include "cluster/commands/places.h"
#include "cluster/commands/ranks.h"
#include "cluster/commands/same_inputs.h"
#include "cluster/search/merge_exact.h"

#include <stdlib.h>

typedef struct truth_options {
    const char *output, *scores, *ids;
    int metric;
    size_t k, threads, max_memory;
    int progress, json;
} truth_options;

typedef struct truth_state {
    const truth_options *options;
    truth_inputs inputs;
    uint64_t *base_ids;  /* on rank 0: one id per row of the base; NULL: row numbers */
    size_t first, end;   /* this rank's rows of the base */
    size_t block, batch; /* bytes of a block of rows; queries compared at a time */
    results *results;    /* on rank 0 */
    sl_exact *exact;     /* of the batch */
    progress progress;
    double scan_s;
} truth_state;

/* Checks the output and loads the ids. Rank 0 alone writes and names rows. */
static int prepare_output(truth_state *state) {
    const truth_options *options = state->options;
    const char *const inputs[] = {state->inputs.base_path, state->inputs.queries_path, options->ids, NULL};
    size_t n = state->inputs.base->n;
    if (ranks()->rank != 0) return EXIT_DONE;
    int status = results_check(options->output, options->scores, inputs);
    if (status == EXIT_DONE && options->ids) {
        status = vectors_read_ids(options->ids, state->inputs.base_path, &n, &state->base_ids);
        if (status == EXIT_DONE) status = ids_check_distinct(options->ids, state->base_ids, n);
        if (status == EXIT_DONE) status = results_check_ids(options->output, state->base_ids, n);
    }
    if (status == EXIT_DONE)
        status =
            results_create(options->output, options->scores, state->inputs.queries->n, options->k, &state->results);
    return status;
}

/* Bytes that a query of a batch takes on this rank: the query and its codes, its entries here, sent and received, and
 * its results. */
static size_t query_bytes(const truth_state *state) {
    return 4 * truth_row_size(&state->inputs) + state->options->k * 64 + 256;
}

/* Divides the memory: an eighth for blocks of rows, and what the ids leave for a batch of queries. */
static int divide_memory(truth_state *state) {
    const size_t limit = state->options->max_memory, nq = state->inputs.queries->n;
    const size_t ids = state->base_ids ? state->inputs.base->n * sizeof *state->base_ids : 0;
    state->block = TRUTH_BLOCK;
    state->batch = nq;
    if (!limit) return EXIT_DONE;
    if (limit / 8 < TRUTH_BLOCK) state->block = limit / 8;
    const size_t taken = ids + 2 * state->block;
    state->batch = limit > taken ? (limit - taken) / query_bytes(state) : 0;
    if (state->batch > nq) state->batch = nq;
    if (state->batch) return EXIT_DONE;
    return report_failure("--max-memory %zu is too little for one query of %zu neighbours; give at least %zu", limit,
                          state->options->k, (ids + query_bytes(state)) / 3 * 4 + 4096);
}

/* A truth_block_fn. */
static int scan_block(void *ctx, char *block, size_t first, size_t count) {
    truth_state *state = ctx;
    progress_part(&state->progress, first - state->first, count);
    sl_status status = sl_exact_scan(state->exact, block, count, 0, first);
    return status == SL_OK ? EXIT_DONE : report_rows(state->inputs.base_path, first, status);
}

/* Compares a batch of queries with this rank's rows. */
static int scan_batch(truth_state *state, size_t first, size_t count) {
    int result =
        truth_exact_create(&state->inputs, first, count, state->options->threads, &state->progress, &state->exact);
    const double start = now_seconds();
    progress_begin(&state->progress, "scanning", "vectors", state->end - state->first,
                   state->options->progress && ranks()->rank == 0);
    if (result == EXIT_DONE)
        result = truth_read_blocks(&state->inputs, state->first, state->end, state->block, scan_block, state);
    progress_end(&state->progress, result == EXIT_DONE);
    state->scan_s += now_seconds() - start;
    return result;
}

static int append_results(truth_state *state, uint64_t *ids, const float *scores, size_t count) {
    const size_t k = state->options->k;
    for (size_t i = 0; state->base_ids && i < count * k; i++)
        if (ids[i] != SL_NO_ID) ids[i] = state->base_ids[ids[i]];
    return results_append(state->results, ids, scores, count);
}

/* Finds the truth of a batch of queries. Every rank returns the same status. */
static int run_batch(truth_state *state, size_t first, size_t count, uint64_t *ids, float *scores) {
    int result = ranks_agree(scan_batch(state, first, count));
    if (result == EXIT_DONE) {
        sl_status status = sl_merge_exact(ranks(), state->exact, count, state->options->k, ids, scores);
        if (status != SL_OK) result = ranks_report(status);
    }
    sl_exact_free(state->exact);
    state->exact = NULL;
    if (result == EXIT_DONE && ranks()->rank == 0) result = append_results(state, ids, scores, count);
    return ranks_agree(result);
}

static int run_batches(truth_state *state) {
    const size_t nq = state->inputs.queries->n, k = state->options->k;
    const size_t room = ranks()->rank == 0 ? state->batch : 0;
    uint64_t *ids = allocate(room, k * sizeof *ids);
    float *scores = allocate(room, k * sizeof *scores);
    int result = ranks_agree(ids && scores ? EXIT_DONE : EXIT_FAILED);
    for (size_t first = 0; result == EXIT_DONE && first < nq; first += state->batch)
        result = run_batch(state, first, nq - first < state->batch ? nq - first : state->batch, ids, scores);
    free(ids);
    free(scores);
    return result;
}

static int print_result(const truth_state *state) {
    const truth_options *options = state->options;
    const size_t n = state->inputs.base->n, nq = state->inputs.queries->n;
    const double rate = state->scan_s > 0 ? (double)n * (double)nq / state->scan_s : 0;
    const char *metric = sl_metric_name(state->inputs.metric);
    if (options->json) {
        json json;
        json_begin(&json, stdout);
        json_count(&json, "n", n);
        json_count(&json, "dim", state->inputs.base->dim);
        json_text(&json, "metric", metric);
        json_text(&json, "input", element_name(state->inputs.type));
        json_count(&json, "queries", nq);
        json_count(&json, "k", options->k);
        json_count(&json, "ranks", ranks()->ranks);
        json_count(&json, "threads", thread_count(options->threads));
        json_count(&json, "batch", state->batch);
        json_real(&json, "scan_s", state->scan_s);
        json_real(&json, "pairs_per_s", rate);
        json_text(&json, "ids", options->ids);
        json_text(&json, "output", options->output);
        json_end(&json);
    } else
        printf("%s: the %zu nearest of %zu vectors for %zu queries, %s; %zu ranks, %.1f s, %.3g pairs/s\n",
               options->output, options->k, n, nq, metric, ranks()->ranks, state->scan_s, rate);
    return report_stdout();
}

/* The longest scan counts. */
static int agree_on_time(truth_state *state) {
    uint64_t nanoseconds = (uint64_t)(state->scan_s * 1e9);
    sl_status status = sl_comm_max(ranks(), &nanoseconds);
    state->scan_s = (double)nanoseconds * 1e-9;
    return status == SL_OK ? EXIT_DONE : ranks_report(status);
}

/* Compares the ranks' bases and queries. */
static int check_same(const truth_state *state) {
    const truth_inputs *inputs = &state->inputs;
    input_facts facts = {0};
    int status = inputs_note_vectors(&facts, "base", inputs->base, inputs->type);
    if (status == EXIT_DONE) status = inputs_note_vectors(&facts, "queries", inputs->queries, inputs->type);
    return inputs_check_same(status, &facts);
}

static int find_truth(truth_state *state) {
    int status = ranks_agree(truth_inputs_open(&state->inputs));
    if (status == EXIT_DONE) status = check_same(state);
    if (status == EXIT_DONE) status = ranks_agree(prepare_output(state));
    if (status == EXIT_DONE) status = ranks_agree(divide_memory(state));
    if (status != EXIT_DONE) return status;
    /* Rank 0 also holds the ids, so its batch may be the smallest. All take that. */
    uint64_t batch = state->batch;
    sl_status least = sl_comm_min(ranks(), &batch);
    if (least != SL_OK) return ranks_report(least);
    state->batch = (size_t)batch;
    state->first = sl_comm_share(state->inputs.base->n, ranks()->rank, ranks()->ranks);
    state->end = sl_comm_share(state->inputs.base->n, ranks()->rank + 1, ranks()->ranks);
    status = run_batches(state);
    if (status == EXIT_DONE) status = agree_on_time(state);
    if (status == EXIT_DONE && ranks()->rank == 0) {
        status = results_commit(state->results);
        state->results = NULL;
    }
    status = ranks_agree(status);
    return status == EXIT_DONE ? print_result(state) : status;
}

static int run_truth(const command *self, int argc, char **argv) {
    truth_options options = {.k = 0};
    const char *paths[2];
    OPTIONS_PARSE(self, argc, argv, &options, paths);
    sl_status placed = places_threads(options.threads, &options.threads);
    if (placed != SL_OK) return ranks_report(placed);
    truth_state state = {
        .options = &options,
        .inputs = {
            .base_path = paths[0], .queries_path = paths[1], .metric = (sl_metric)options.metric, .k = options.k}};
    int status = find_truth(&state);
    results_discard(state.results);
    truth_inputs_close(&state.inputs);
    free(state.base_ids);
    return status;
}

static const char *const operands[] = {"BASE", "QUERIES", NULL};

static const option truth_table[] = {
    {'k', NULL, OPTION_COUNT, "N", 1, offsetof(truth_options, k), "Neighbours per query."},
    {0, "metric", OPTION_WORD, "ip|cosine|l2", 1, offsetof(truth_options, metric), "As for 'shortlist build'."},
    {'o', "output", OPTION_TEXT, "TRUTH.ibin", 1, offsetof(truth_options, output),
     "The neighbours' row numbers, or ids with --ids, best first, one row per query. Rank 0 writes the file."},
    {0, "ids", OPTION_TEXT, "FILE", 0, offsetof(truth_options, ids),
     "The ids of the vectors of BASE, as for 'shortlist truth'. Rank 0 holds them in memory."},
    {0, "scores", OPTION_TEXT, "FILE.fbin", 0, offsetof(truth_options, scores),
     "The neighbours' scores, in the same shape; .fbin, .fvecs or .npy."},
    {0, "max-memory", OPTION_BYTES, "BYTES", 0, offsetof(truth_options, max_memory),
     "Memory of each rank for rows, queries and results; 512M, 16G. Queries that do not fit at once are compared in "
     "batches, and each batch reads BASE again."},
    OPTION_THREADS(truth_options, "Threads of each rank; 0 (default) takes as many as OMP_NUM_THREADS or the rank's "
                                  "CPUs give."),
    OPTION_PROGRESS(truth_options),
    OPTION_JSON(truth_options),
    OPTION_LAST};

const command command_cluster_truth = {
    .name = "truth",
    .summary = "find the true neighbours in a set larger than one machine",
    .synopsis = "mpirun -np N shortlist-mpi truth BASE QUERIES -k N --metric ip|cosine|l2 -o TRUTH.ibin [--ids FILE] "
                "[--scores FILE.fbin] [--max-memory BYTES] [--threads N] [--progress] [--json]",
    .description =
        "Each rank compares all queries with its share of the rows of BASE, which every rank reads from the same path. "
        "The ranks merge what they found. The files are the same, byte for byte, as those of 'shortlist truth', at "
        "any number of ranks and threads.\n",
    .examples = "mpirun -np 4 shortlist-mpi truth base.fbin queries.fbin -k 100 --metric cosine -o truth.ibin\n",
    .operands = operands,
    .options = truth_table,
    .run = run_truth,
};
