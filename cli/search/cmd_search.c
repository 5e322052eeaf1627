#include "cli/common/clock.h"
#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/files/ids.h"
#include "cli/files/range_row.h"
#include "cli/files/results.h"
#include "cli/files/vectors.h"
#include "cli/index/description.h"
#include "cli/index/open_save.h"
#include "cli/search/commands.h"
#include "cli/search/search_settings.h"
#include "cli/search/search_totals.h"

#include <inttypes.h>
#include <stdlib.h>

/* Queries read, searched and written at a time: enough for every core, and few enough for memory at a large k. */
#define BLOCK_ROWS    8192
#define BLOCK_RESULTS ((size_t)8 << 20)
/* The same for queries with any number of results. */
#define BLOCK_RANGES 256

typedef struct search_options {
    const char *output, *scores;
    filter_choice filter;
    fraction_list recall;
    double stop; /* below 0: not given */
    size_t k, ef, rerank, probes, groups, group_size, max_visits, threads;
    score_choice threshold, radius;
    int exact, place, progress, json;
    numa_choice numa;
    int prefault, tier;
} search_options;

typedef struct search_state {
    const search_options *options;
    const char *index_path, *queries_path;
    sl_index *index;
    sl_index_stats stats;
    vectors *queries;
    element type;      /* type to read the queries in */
    results *results;  /* NULL: print the results */
    sl_filter *filter; /* NULL: none */
    double search_s;
    sl_search_stats counts;
} search_state;

/* Prints a query and its neighbours, as text or as one JSON object per line. */
static void print_neighbours(const search_state *state, size_t query, const uint64_t *ids, const float *scores,
                             size_t count) {
    if (!state->options->json) {
        printf("query %zu\n", query);
        for (size_t i = 0; i < count; i++)
            printf("%6zu %12" PRIu64 " %12.6g\n", i + 1, ids[i], (double)scores[i]);
        return;
    }
    json json;
    json_begin(&json, stdout);
    json_count(&json, "query", query);
    json_open_array(&json, "ids");
    for (size_t i = 0; i < count; i++)
        json_count(&json, NULL, ids[i]);
    json_close_array(&json);
    json_open_array(&json, "scores");
    for (size_t i = 0; i < count; i++)
        json_real(&json, NULL, (double)scores[i]);
    json_close_array(&json);
    json_end(&json);
}

static int write_found(search_state *state, size_t first, size_t count, const uint64_t *ids, const float *scores) {
    if (state->results) return results_append(state->results, ids, scores, count);
    const size_t k = state->options->k;
    for (size_t i = 0; i < count; i++) {
        size_t found = 0;
        while (found < k && ids[i * k + found] != SL_NO_ID)
            found++;
        print_neighbours(state, first + i, ids + i * k, scores + i * k, found);
    }
    return report_stdout();
}

static int search_block(search_state *state, const sl_search_params *params, size_t first, size_t count, void *rows,
                        uint64_t *ids, float *scores) {
    sl_search_stats counts;
    int result = vectors_read(state->queries, first, count, state->type, 0, rows);
    if (result != EXIT_DONE) return result;
    double start = now_seconds();
    sl_status status = sl_index_search(state->index, rows, element_dtype(state->type), count, 0, state->options->k,
                                       params, ids, scores, &counts);
    state->search_s += now_seconds() - start;
    if (status != SL_OK) return report_rows(state->queries_path, first, status);
    search_totals_add(&state->counts, &counts);
    return write_found(state, first, count, ids, scores);
}

static int search_blocks(search_state *state, sl_search_params *params) {
    const search_options *options = state->options;
    size_t n = state->queries->n, block = n < BLOCK_ROWS ? n : BLOCK_ROWS;
    if (options->k > BLOCK_RESULTS / block) block = options->k < BLOCK_RESULTS ? BLOCK_RESULTS / options->k : 1;
    void *rows = allocate(block, state->queries->dim * element_size(state->type));
    uint64_t *ids = allocate(block, options->k * sizeof *ids);
    float *scores = allocate(block, options->k * sizeof *scores);
    progress progress;
    params->progress = progress_step;
    params->progress_ctx = &progress;
    int result = rows && ids && scores ? EXIT_DONE : EXIT_FAILED;
    progress_begin(&progress, "searching", "queries", n, options->progress);
    for (size_t first = 0; result == EXIT_DONE && first < n; first += block) {
        size_t count = n - first < block ? n - first : block;
        progress_part(&progress, first, count);
        result = search_block(state, params, first, count, rows, ids, scores);
    }
    progress_end(&progress, result == EXIT_DONE);
    free(rows);
    free(ids);
    free(scores);
    return result;
}

/* Searches and prints a block of queries within the radius. */
static int search_range_block(search_state *state, const sl_range_params *params, size_t first, size_t count,
                              void *vectors, range_row *rows) {
    int result = vectors_read(state->queries, first, count, state->type, 0, vectors);
    if (result != EXIT_DONE) return result;
    for (size_t i = 0; i < count; i++)
        range_row_clear(&rows[i]);
    sl_status status = sl_index_range(state->index, vectors, element_dtype(state->type), count, 0,
                                      state->options->radius.value, params, range_row_take, rows, NULL);
    if (status != SL_OK) return report_rows(state->queries_path, first, status);
    for (size_t i = 0; i < count && result == EXIT_DONE; i++) {
        result = range_row_sort(&rows[i], state->stats.metric);
        if (result == EXIT_DONE) print_neighbours(state, first + i, rows[i].ids, rows[i].scores, rows[i].count);
    }
    return result == EXIT_DONE ? report_stdout() : result;
}

static int search_ranges(search_state *state) {
    const search_options *options = state->options;
    size_t n = state->queries->n, block = n < BLOCK_RANGES ? n : BLOCK_RANGES;
    void *vectors = allocate(block, state->queries->dim * element_size(state->type));
    range_row *rows = allocate(block, sizeof *rows);
    progress progress;
    sl_range_params params;
    sl_range_params_init(&params);
    params.exact = options->exact;
    if (options->ef != SIZE_MAX) params.ef = options->ef;
    params.filter = state->filter;
    params.threads = options->threads;
    params.progress = progress_step;
    params.progress_ctx = &progress;
    int result = vectors && rows ? EXIT_DONE : EXIT_FAILED;
    progress_begin(&progress, "searching", "queries", n, options->progress);
    for (size_t first = 0; result == EXIT_DONE && first < n; first += block) {
        size_t count = n - first < block ? n - first : block;
        progress_part(&progress, first, count);
        result = search_range_block(state, &params, first, count, vectors, rows);
    }
    progress_end(&progress, result == EXIT_DONE);
    for (size_t i = 0; rows && i < block; i++)
        range_row_free(&rows[i]);
    free(vectors);
    free(rows);
    return result;
}

static int print_result(const search_state *state, const sl_search_params *params) {
    double nq = (double)state->queries->n;
    double rate = state->search_s > 0 ? nq / state->search_s : 0;
    double evaluations = (double)state->counts.evaluations / nq;
    int scanned = state->counts.expansions == 0 && params->probes > 0;
    if (state->options->json) {
        json json;
        json_begin(&json, stdout);
        json_index(&json, &state->stats);
        json_count(&json, "queries", state->queries->n);
        json_count(&json, "k", state->options->k);
        json_count(&json, "ef", params->ef);
        json_count(&json, "rerank", params->rerank);
        json_real(&json, "stop", params->stop);
        json_count(&json, "probes", params->probes);
        json_count(&json, "groups", params->groups);
        if (params->group_size) json_count(&json, "group_size", params->group_size);
        if (params->max_visits) json_count(&json, "cut", state->counts.cut);
        if (state->options->recall.count) json_real(&json, "target", state->options->recall.values[0]);
        json_count(&json, "threads", thread_count(state->options->threads));
        json_count(&json, "results", state->counts.results);
        if (state->filter) {
            json_count(&json, "allowed", sl_filter_count(state->filter));
            json_strategies(&json, &state->counts);
        }
        json_real(&json, "search_s", state->search_s);
        json_real(&json, "qps", rate);
        json_real(&json, "evaluations", evaluations);
        json_text(&json, "output", state->options->output);
        json_end(&json);
    } else
        printf("%s: the %zu nearest for %zu queries %s %zu; %.3f s, %.0f queries/s, %.0f evaluations a query\n",
               state->options->output, state->options->k, state->queries->n, scanned ? "by probes" : "at ef",
               scanned ? params->probes : params->ef, state->search_s, rate, evaluations);
    return report_stdout();
}

/* Chooses ef and rerank once, as given or as tuned for the recall. Every block then searches alike. */
static int choose_settings(const search_state *state, sl_search_params *params) {
    const search_options *options = state->options;
    if (options->recall.count) {
        sl_tuned tuned = {.struct_size = sizeof tuned};
        sl_status status = sl_index_find_tuned(state->index, options->k, options->recall.values[0], &tuned);
        if (status != SL_OK) return report_status(state->index_path, status);
        if (state->filter || options->group_size) { /* not all settings fit, so the library chooses */
            params->recall = options->recall.values[0];
            params->ef = tuned.ef_alone;
            return EXIT_DONE;
        }
        search_settings_take(&tuned, state->queries->n / thread_count(options->threads), params);
        return EXIT_DONE;
    }
    if (options->ef != SIZE_MAX) params->ef = options->ef;
    if (params->ef < options->k) params->ef = options->k;
    params->rerank = options->rerank;
    params->stop = options->stop > 0 ? options->stop : 0;
    params->probes = options->probes;
    params->groups = options->groups;
    return EXIT_DONE;
}

static int search_index(search_state *state) {
    const search_options *options = state->options;
    const char *const inputs[] = {state->index_path, state->queries_path, options->filter.path, NULL};
    const opening how = {.place = (sl_place)options->place,
                         .numa = options->numa,
                         .prefault = options->prefault,
                         .tier = (sl_tier)options->tier,
                         .progress = options->progress};
    sl_search_params params;
    sl_search_params_init(&params);
    int status = options->output ? results_check(options->output, options->scores, inputs) : EXIT_DONE;
    if (status == EXIT_DONE) status = open_index(state->index_path, how, &state->index, &state->stats);
    if (status == EXIT_DONE && options->group_size && !state->stats.keys)
        status = report_failure("%s: has no keys to group by; build it again with --keys", state->index_path);
    if (status == EXIT_DONE && filter_is_asked(&options->filter))
        status = filter_make(&options->filter, state->index_path, state->index, &state->filter);
    if (status == EXIT_DONE) status = vectors_open(state->queries_path, VECTORS_QUERIES, &state->queries);
    if (status == EXIT_DONE) status = vectors_check_metric(state->queries, state->stats.metric);
    if (status == EXIT_DONE && !options->radius.given)
        status = check_depth("-k", options->k, state->stats.n, state->index_path);
    if (status == EXIT_DONE && options->ef != SIZE_MAX)
        status = check_depth("--ef", options->ef, state->stats.n, state->index_path);
    if (status == EXIT_DONE && !options->radius.given) status = choose_settings(state, &params);
    if (status == EXIT_DONE) status = vectors_match_dim(state->queries, state->stats.dim, state->index_path);
    if (status == EXIT_DONE)
        status = vectors_match_type(state->queries, state->stats.dtype, state->index_path, &state->type);
    if (status == EXIT_DONE && options->output)
        status = results_create(options->output, options->scores, state->queries->n, options->k, &state->results);
    if (status != EXIT_DONE) return status;
    if (options->radius.given) return search_ranges(state);
    params.has_threshold = options->threshold.given;
    params.threshold = options->threshold.value;
    params.threads = options->threads;
    params.filter = state->filter;
    params.group_size = options->group_size;
    params.max_visits = options->max_visits;
    status = search_blocks(state, &params);
    if (status != EXIT_DONE || !options->output) return status;
    status = results_commit(state->results);
    state->results = NULL;
    return status == EXIT_DONE ? print_result(state, &params) : status;
}

/* Checks that the options fit a range search. */
static int check_range(const search_options *options) {
    if (options->exact && !options->radius.given) return report_usage("--exact goes with --radius");
    if (!options->radius.given) return options->k == SIZE_MAX ? report_usage("-k N is missing") : EXIT_DONE;
    if (options->k != SIZE_MAX) return report_usage("-k and --radius exclude one another");
    if (options->output) return report_usage("--output and --radius exclude one another");
    if (options->recall.count) return report_usage("--recall and --radius exclude one another");
    if (options->rerank) return report_usage("--rerank and --radius exclude one another");
    if (options->stop >= 0) return report_usage("--stop and --radius exclude one another");
    if (options->probes) return report_usage("--probes and --radius exclude one another");
    if (options->group_size) return report_usage("--group-size and --radius exclude one another");
    if (options->max_visits) return report_usage("--max-visits and --radius exclude one another");
    if (options->threshold.given) return report_usage("--threshold and --radius exclude one another");
    return EXIT_DONE;
}

static int run_search(const command *self, int argc, char **argv) {
    search_options options = {
        .k = SIZE_MAX, .filter = FILTER_CHOICE_ALL, .ef = SIZE_MAX, .stop = -1, .place = SL_PLACE_MAP};
    const char *paths[2];
    OPTIONS_PARSE(self, argc, argv, &options, paths);
    if (check_range(&options) != EXIT_DONE) return EXIT_USAGE;
    if (options.recall.count > 1) return report_usage("--recall takes one number");
    if (options.recall.count && options.ef != SIZE_MAX) return report_usage("--ef and --recall exclude one another");
    if (options.recall.count && options.rerank) return report_usage("--rerank and --recall exclude one another");
    if (options.recall.count && options.stop >= 0) return report_usage("--stop and --recall exclude one another");
    if (options.recall.count && options.probes) return report_usage("--probes and --recall exclude one another");
    if (options.groups && !options.probes) return report_usage("--groups goes with --probes");
    if (options.group_size && options.probes) return report_usage("--probes and --group-size exclude one another");
    if (options.scores && !options.output) return report_usage("--scores goes with --output");
    if (filter_is_asked(&options.filter) && options.probes)
        return report_usage("--probes and %s exclude one another", options.filter.path ? "--filter" : "masks or keys");
    if (filter_check(&options.filter) != EXIT_DONE) return EXIT_USAGE;
    search_state state = {.options = &options, .index_path = paths[0], .queries_path = paths[1]};
    int status = search_index(&state);
    results_discard(state.results);
    vectors_close(state.queries);
    sl_filter_free(state.filter);
    sl_index_free(state.index);
    return status;
}

static const char *const operands[] = {"INDEX", "QUERIES", NULL};

static const option search_table[] = {
    {'k', NULL, OPTION_COUNT, "N", 0, offsetof(search_options, k), "Neighbours a query; required without --radius."},
    {0, "radius", OPTION_SCORE, "R", 0, offsetof(search_options, radius),
     "Print all vectors within this score of each query instead of the -k nearest: those that score at least R under "
     "cosine and ip, at most R under l2. A walk finds them and may miss a few. --ef is the candidates kept on its way "
     "to the query."},
    {0, "exact", OPTION_FLAG, NULL, 0, offsetof(search_options, exact),
     "With --radius: compare each query with all vectors, so that none is missed."},
    {0, "threshold", OPTION_SCORE, "S", 0, offsetof(search_options, threshold),
     "Leave out neighbours of a worse score than S: of less under cosine and ip, of more under l2."},
    {'o', "output", OPTION_TEXT, "OUT.ibin", 0, offsetof(search_options, output),
     "The neighbours' ids, best first, one row a query. Without --output they are printed with their scores, or with "
     "--json as one object a query and line: query, ids, scores. .ibin and .ivecs hold 32-bit ids and -1 where a "
     "neighbour is missing; .npy holds 64-bit ids and 2^64-1 there."},
    {0, "scores", OPTION_TEXT, "FILE.fbin", 0, offsetof(search_options, scores),
     "The neighbours' scores, in the same shape, NaN where a neighbour is missing; .fbin, .fvecs or .npy."},
    {0, "filter", OPTION_TEXT, "FILE", 0, offsetof(search_options, filter.path),
     "Find only these ids: a .npy or .ibin file of one column of whole numbers. Ids that INDEX lacks do no harm. A "
     "file of no ids finds nothing. Fewer than -k are found only if fewer are allowed."},
    OPTION_FILTER_INDEX(search_options),
    {0, "ef", OPTION_COUNT, "N", 0, offsetof(search_options, ef),
     "Candidates kept while the graph is walked (default 64, or -k where that is more). More find more of the true "
     "neighbours in more time."},
    {0, "recall", OPTION_FRACTIONS, "R", 0, offsetof(search_options, recall),
     "The recall to reach, by the settings that 'shortlist tune' stored in the index for it, instead of --ef, "
     "--rerank, --stop, --probes and --groups."},
    {0, "rerank", OPTION_COUNT, "N", 0, offsetof(search_options, rerank),
     "Candidates the refine copy re-ranks; 0 (default) chooses from -k and --ef."},
    {0, "stop", OPTION_REAL, "X", 0, offsetof(search_options, stop),
     "Also end a search when the next candidate is more than 1 + X times as far as the -k th best so far, or the 16th "
     "where -k is more. Under ip, the candidate's score must be lower by more than X times that best score's "
     "magnitude. Easy queries then take less time. Useful values are some 0.05 to 0.5; 0 (default) leaves the end to "
     "--ef alone."},
    {0, "probes", OPTION_COUNT, "N", 0, offsetof(search_options, probes),
     "Scan the N partitions nearest to each query instead of walking the graph. Scans are faster for many queries at "
     "once. Fewer than -k are found where fewer are scanned. Under ip the longest vectors of more partitions count as "
     "N. 0 (default) walks by --ef and --stop. An index without partitions (of fewer than 4096 vectors) walks too, and "
     "so does one of codes i16 or f32, or on a processor that has only scalar kernels."},
    {0, "groups", OPTION_COUNT, "N", 0, offsetof(search_options, groups),
     "Choose the --probes partitions from the N groups nearest to the query, of some 16 partitions each, instead of "
     "from all (0, default). Groups are faster from a million vectors on."},
    {0, "max-visits", OPTION_COUNT, "N", 0, offsetof(search_options, max_visits),
     "End a query after N evaluations, some hundred more at most, with the neighbours found by then. --json counts "
     "these queries as cut. 0 (default) sets no bound."},
    {0, "group-size", OPTION_COUNT, "N", 0, offsetof(search_options, group_size),
     "Find at most N neighbours of one key, in an INDEX with keys; 1 finds the best of each of -k keys. 0 (default) "
     "finds any."},
    OPTION_THREADS(search_options, "Threads to search with; 0 (default) takes all."),
    {0, "place", OPTION_WORD, "dram|map|pmem", 0, offsetof(search_options, place),
     "Copy the index into memory (dram), map its file (map, default) or map it from persistent memory (pmem). A copy "
     "is safe from a file that is cut short. A mapped file opens at once."},
    OPTION_PLACE_NODES(search_options),
    OPTION_PREFAULT(search_options),
    OPTION_TIER(search_options),
    OPTION_PROGRESS(search_options),
    OPTION_JSON(search_options),
    OPTION_LAST};

const command command_search = {
    .name = "search",
    .summary = "find the nearest neighbours of a file of queries",
    .synopsis =
        "shortlist search INDEX QUERIES {-k N | --radius R [--exact]} [-o OUT.ibin [--scores FILE.fbin]] "
        "[--threshold S] [--filter FILE] "
        "[--any-tags MASK] [--all-tags MASK] [--none-tags MASK] [--key-min KEY] [--key-max KEY] [--ef N | --recall R] "
        "[--rerank N] [--stop X] [--probes N [--groups N]] [--group-size N] [--max-visits N] [--threads N] [--place "
        "dram|map|pmem] "
        "[--numa "
        "interleave|bind:N|local] "
        "[--prefault] [--tier auto|none|dram] [--progress] [--json]",
    .description =
        "Asks INDEX for the -k nearest vectors of each row of QUERIES and writes their ids, or prints them. Queries of "
        "an index over floating-point vectors may be of any floating-point type; those of an index over integers must "
        "be of its own. Vector files are " VECTORS_READ_ENDINGS "; of an .hdf5 file the dataset test is read.\n",
    .examples = "shortlist search base.sl queries.fbin -k 10\n"
                "shortlist search base.sl queries.fbin -k 10 --ef 100 -o found.ibin\n"
                "shortlist search base.sl queries.npy -k 100 --ef 400 -o found.npy --scores scores.npy\n"
                "shortlist search base.sl queries.fbin --radius 0.8 --json\n",
    .operands = operands,
    .options = search_table,
    .run = run_search,
};
