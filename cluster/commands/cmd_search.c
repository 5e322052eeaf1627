/* `search`: the neighbours of a file of queries, which the ranks answer together. */
#include "cli/common/clock.h"
#include "cli/common/interrupt.h"
#include "cli/common/json_out.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/files/results.h"
#include "cli/index/description.h"
#include "cli/search/search_settings.h"
#include "cluster/commands/commands.h"
#include "cluster/commands/places.h"
#include "cluster/commands/ranks.h"
#include "cluster/commands/searched.h"
#include "cluster/search/gather_results.h"

#include <stdlib.h>

/* Queries of each rank that are searched at a time, and results that rank 0 holds. */
#define BLOCK_ROWS    ((size_t)8192)
#define BLOCK_RESULTS ((size_t)8 << 20)

typedef struct search_options {
    const char *output, *scores;
    fraction_list recall;
    split_choice split;
    size_t k, ef, threads;
    int place, json;
} search_options;

typedef struct search_state {
    const search_options *options;
    searched searched;
    const char *queries_path;
    vectors *queries;
    element type;
    results *results; /* on rank 0 */
    sl_search_params params;
    double search_s;
    uint64_t evaluations, found;
    uint64_t asked; /* of a split: parts */
} search_state;

/* Memory for a block of queries: this rank's share, and on rank 0 all results. */
typedef struct block {
    size_t most; /* queries of a block */
    void *rows;
    uint64_t *ids, *all_ids;
    float *scores, *all_scores;
} block;

static int block_create(const search_state *state, block *block) {
    const size_t k = state->options->k, all = ranks()->ranks, n = state->queries->n;
    block->most = n / all < BLOCK_ROWS ? n : BLOCK_ROWS * all;
    if (block->most > BLOCK_RESULTS / k) block->most = k < BLOCK_RESULTS ? BLOCK_RESULTS / k : 1;
    const size_t mine = block->most / all + 1, gathered = ranks()->rank == 0 ? block->most : 0;
    block->rows = allocate(mine, state->queries->dim * element_size(state->type));
    block->ids = allocate(mine, k * sizeof *block->ids);
    block->scores = allocate(mine, k * sizeof *block->scores);
    block->all_ids = allocate(gathered, k * sizeof *block->all_ids);
    block->all_scores = allocate(gathered, k * sizeof *block->all_scores);
    return block->rows && block->ids && block->scores && block->all_ids && block->all_scores ? EXIT_DONE : EXIT_FAILED;
}

static void block_free(block *block) {
    free(block->rows);
    free(block->ids);
    free(block->scores);
    free(block->all_ids);
    free(block->all_scores);
}

/* Answers this rank's queries of a block by its own index: `count` from row `first` of the file on. */
static int answer_alone(search_state *state, block *block, size_t first, size_t count) {
    sl_search_stats stats = {0};
    if (count == 0) return EXIT_DONE;
    sl_status found = sl_index_search(state->searched.index, block->rows, element_dtype(state->type), count, 0,
                                      state->options->k, &state->params, block->ids, block->scores, &stats);
    if (found != SL_OK) return report_rows(state->queries_path, first, found);
    state->evaluations += stats.evaluations;
    state->found += stats.results;
    return EXIT_DONE;
}

/* Answers them by the parts of a split, with the other ranks. */
static int answer_together(search_state *state, block *block, size_t count) {
    const search_options *options = state->options;
    const sl_split_params params =
        split_choice_params(&options->split, &state->searched, options->k, state->params.ef, 0);
    sl_split_counts counts;
    const sl_split_queries queries = {.rows = block->rows, .dtype = element_dtype(state->type), .count = count};
    const sl_split_results out = {.ids = block->ids, .scores = block->scores, .counts = &counts};
    sl_status status = sl_split_search(state->searched.split, &params, &queries, &out);
    if (status != SL_OK) return ranks_report(status);
    state->evaluations += counts.evaluations;
    state->found += counts.results;
    state->asked += counts.asked;
    return EXIT_DONE;
}

static int answer(search_state *state, block *block, size_t first, size_t count) {
    int status =
        ranks_agree(searched_read_queries(&state->searched, state->queries, first, count, state->type, block->rows));
    if (status != EXIT_DONE) return status;
    return state->searched.split ? answer_together(state, block, count) : answer_alone(state, block, first, count);
}

/* Answers a block of queries on all ranks, and writes the results. */
static int search_block(search_state *state, block *block, size_t first, size_t count) {
    const sl_comm *comm = ranks();
    const size_t from = sl_comm_share(count, comm->rank, comm->ranks);
    const size_t mine = sl_comm_share(count, comm->rank + 1, comm->ranks) - from;
    const double start = now_seconds();
    int status = answer(state, block, first + from, mine);
    if (status == EXIT_DONE && interrupted()) status = report_interrupted();
    status = ranks_agree(status);
    state->search_s += now_seconds() - start;
    if (status != EXIT_DONE) return status;
    sl_status gathered =
        sl_gather_results(comm, count, state->options->k, block->ids, block->scores, block->all_ids, block->all_scores);
    if (gathered != SL_OK) return ranks_report(gathered);
    if (comm->rank == 0) status = results_append(state->results, block->all_ids, block->all_scores, count);
    return ranks_agree(status);
}

static int search_blocks(search_state *state) {
    block block = {0};
    const size_t n = state->queries->n;
    int status = ranks_agree(block_create(state, &block));
    for (size_t first = 0; status == EXIT_DONE && first < n; first += block.most)
        status = search_block(state, &block, first, n - first < block.most ? n - first : block.most);
    block_free(&block);
    return status;
}

/* Chooses the settings as `shortlist search` does in one process. */
static int choose_settings(search_state *state) {
    const search_options *options = state->options;
    const char *path = state->searched.path;
    const size_t n = state->searched.stats.n;
    sl_search_params_init(&state->params);
    state->params.threads = options->threads;
    int status = check_depth("-k", options->k, n, path);
    if (status == EXIT_DONE && options->ef != SIZE_MAX) status = check_depth("--ef", options->ef, n, path);
    if (status == EXIT_DONE) status = split_choice_check(&options->split);
    if (status != EXIT_DONE) return status;
    if (options->recall.count && state->searched.split)
        return report_failure("%s: a split stores no settings for a recall; give --ef, and --cover", path);
    if (options->recall.count) {
        sl_tuned tuned = {.struct_size = sizeof tuned};
        sl_status found = sl_index_find_tuned(state->searched.index, options->k, options->recall.values[0], &tuned);
        if (found != SL_OK) return report_status(path, found);
        search_settings_take(&tuned, state->queries->n / thread_count(options->threads), &state->params);
        return EXIT_DONE;
    }
    if (options->ef != SIZE_MAX) state->params.ef = options->ef;
    if (state->params.ef < options->k) state->params.ef = options->k;
    state->params.stop = options->split.stop;
    return EXIT_DONE;
}

static int print_result(const search_state *state) {
    const search_options *options = state->options;
    const double nq = (double)state->queries->n, rate = state->search_s > 0 ? nq / state->search_s : 0;
    const double evaluations = (double)state->evaluations / nq;
    if (options->json) {
        json json;
        json_begin(&json, stdout);
        if (state->searched.index) json_index(&json, &state->searched.stats);
        json_count(&json, "queries", state->queries->n);
        json_count(&json, "k", options->k);
        json_count(&json, "ef", state->params.ef);
        json_count(&json, "ranks", ranks()->ranks);
        json_count(&json, "threads", thread_count(options->threads));
        json_count(&json, "results", state->found);
        json_real(&json, "search_s", state->search_s);
        json_real(&json, "qps", rate);
        json_real(&json, "evaluations", evaluations);
        if (state->searched.split) json_real(&json, "asked", (double)state->asked / nq);
        json_text(&json, "output", options->output);
        json_end(&json);
    } else
        printf("%s: the %zu nearest for %zu queries; %zu ranks, %.3f s, %.0f queries/s, %.0f evaluations per query\n",
               options->output, options->k, state->queries->n, ranks()->ranks, state->search_s, rate, evaluations);
    return report_stdout();
}

/* Adds up the ranks' counts. */
static int add_counts(search_state *state) {
    uint64_t counts[3] = {state->evaluations, state->found, state->asked};
    sl_status status = sl_comm_sum_counts(ranks(), counts, 3);
    if (status != SL_OK) return ranks_report(status);
    state->evaluations = counts[0];
    state->found = counts[1];
    state->asked = counts[2];
    return EXIT_DONE;
}

/* Opens the inputs, and on rank 0 the output. */
static int prepare(search_state *state) {
    const search_options *options = state->options;
    const char *const inputs[] = {state->searched.path, state->queries_path, NULL};
    int status = searched_open_queries(&state->searched, state->queries_path, &state->queries, &state->type);
    if (status != EXIT_DONE) return status;
    status = choose_settings(state);
    if (status == EXIT_DONE && ranks()->rank == 0) {
        status = results_check(options->output, options->scores, inputs);
        if (status == EXIT_DONE)
            status = results_create(options->output, options->scores, state->queries->n, options->k, &state->results);
    }
    return ranks_agree(status);
}

static int search_queries(search_state *state) {
    int status = prepare(state);
    if (status == EXIT_DONE) status = search_blocks(state);
    if (status == EXIT_DONE) status = add_counts(state);
    if (status == EXIT_DONE && ranks()->rank == 0) {
        status = results_commit(state->results);
        state->results = NULL;
    }
    status = ranks_agree(status);
    return status == EXIT_DONE ? print_result(state) : status;
}

static int run_search(const command *self, int argc, char **argv) {
    search_options options = {.split = SPLIT_CHOICE_DEFAULT, .ef = SIZE_MAX, .place = SL_PLACE_MAP};
    const char *paths[2];
    OPTIONS_PARSE(self, argc, argv, &options, paths);
    if (options.recall.count > 1) return report_usage("--recall takes one number");
    if (options.recall.count && options.split.stop > 0) return report_usage("--stop and --recall exclude one another");
    if (options.recall.count && options.ef != SIZE_MAX) return report_usage("--ef and --recall exclude one another");
    sl_status placed = places_threads(options.threads, &options.threads);
    if (placed != SL_OK) return ranks_report(placed);
    search_state state = {.options = &options, .queries_path = paths[1]};
    int status = searched_open(paths[0], options.place, options.threads, &state.searched);
    if (status == EXIT_DONE) status = search_queries(&state);
    results_discard(state.results);
    vectors_close(state.queries);
    searched_close(&state.searched);
    return status;
}

static const char *const operands[] = {"INDEX|DIR", "QUERIES", NULL};

static const option search_table[] = {
    {'k', NULL, OPTION_COUNT, "N", 1, offsetof(search_options, k), "Neighbours per query."},
    {'o', "output", OPTION_TEXT, "OUT.ibin", 1, offsetof(search_options, output),
     "The neighbours' ids, best first, one row per query, as of 'shortlist search'. Rank 0 writes the file."},
    {0, "scores", OPTION_TEXT, "FILE.fbin", 0, offsetof(search_options, scores),
     "The neighbours' scores, in the same shape; .fbin, .fvecs or .npy."},
    {0, "ef", OPTION_COUNT, "N", 0, offsetof(search_options, ef),
     "Candidates kept while a graph is walked (default 64, or -k where that is more)."},
    {0, "recall", OPTION_FRACTIONS, "R", 0, offsetof(search_options, recall),
     "The recall to reach, by the settings that 'shortlist tune' stored in the index for it."},
    OPTIONS_SPLIT(search_options),
    OPTION_SEARCH_PLACE(search_options),
    OPTION_THREADS(search_options, "Threads of each rank; 0 (default) takes as many as OMP_NUM_THREADS or the rank's "
                                   "CPUs give."),
    OPTION_JSON(search_options),
    OPTION_LAST};

const command command_cluster_search = {
    .name = "search",
    .summary = "find the nearest neighbours of a file of queries",
    .synopsis = "mpirun -np N shortlist-mpi search INDEX|DIR QUERIES -k N -o OUT.ibin [--scores FILE.fbin] [--ef N | "
                "--recall R] [--cover SHARE] [--stop X] [--batch N] [--place dram|map] [--threads N] [--json]",
    .description =
        "Every rank opens the same INDEX and answers its share of the queries. The files have the same rows as those "
        "of "
        "'shortlist search' with the same settings.\nDIR is a split, made by 'shortlist-mpi split'. Each rank then "
        "serves its parts, and sends each query of its share to the parts that may hold its neighbours.\n",
    .examples = "mpirun -np 4 shortlist-mpi search base.sl queries.fbin -k 10 --ef 100 -o found.ibin\n"
                "mpirun -np 4 shortlist-mpi search parts queries.fbin -k 10 --ef 100 --cover 0.98 -o found.ibin\n",
    .operands = operands,
    .options = search_table,
    .run = run_search,
};
