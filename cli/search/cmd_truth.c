#include "cli/common/clock.h"
#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/files/ids.h"
#include "cli/files/results.h"
#include "cli/search/commands.h"
#include "cli/search/truth_scan.h"

#include <stdlib.h>
#include <string.h>

typedef struct truth_options {
    const char *output, *scores, *ids, *tags, *keys;
    filter_choice filter;
    int metric;
    size_t k, threads;
    int progress, json;
} truth_options;

typedef struct truth_state {
    const truth_options *options;
    truth_inputs inputs;
    uint64_t *base_ids; /* one id per row of the base; NULL: row numbers */
    uint64_t *allowed;  /* the only ids to compare with, in rising order; NULL: all */
    size_t allowed_count;
    uint64_t *tags, *keys; /* one per row of the base; NULL: not used */
    uint64_t *rows;        /* with a filter: the compared rows of the base, in order; else NULL */
    size_t compared;
    sl_exact *exact;
    progress progress;
    double scan_s;
} truth_state;

/* Returns whether the filter allows a row of the base. */
static int is_allowed(const truth_state *state, size_t row) {
    const uint64_t id = state->base_ids ? state->base_ids[row] : row;
    if (!filter_passes(&state->options->filter, state->tags ? state->tags[row] : 0, state->keys ? state->keys[row] : 0))
        return 0;
    return !state->allowed || bsearch(&id, state->allowed, state->allowed_count, sizeof id, compare_ids) != NULL;
}

/* Moves the block's allowed rows to its front and notes their row numbers. Returns how many there are. */
static size_t keep_allowed(truth_state *state, char *block, size_t first, size_t count, size_t row) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_allowed(state, first + i)) continue;
        if (kept != i) memcpy(block + kept * row, block + i * row, row);
        state->rows[state->compared + kept++] = first + i;
    }
    return kept;
}

/* Reports the first row that cannot be compared, by its number in the base. */
static int report_row(const truth_state *state, const char *block, size_t count, size_t row, sl_status failed) {
    sl_status status = failed;
    size_t i = 0;
    if (!state->rows || failed != SL_EVALUE) return report_rows(state->inputs.base_path, state->compared, failed);
    while (i < count && (status = sl_exact_scan(state->exact, block + i * row, 1, 0, 0)) == SL_OK)
        i++;
    return report_rows(state->inputs.base_path, i < count ? state->rows[state->compared + i] : 0, status);
}

/* Compares the queries with the block's rows, or with the allowed ones. A truth_block_fn. */
static int scan_block(void *ctx, char *block, size_t first, size_t count) {
    truth_state *state = ctx;
    const size_t row = truth_row_size(&state->inputs);
    size_t kept = state->rows ? keep_allowed(state, block, first, count, row) : count;
    progress_part(&state->progress, first, count);
    sl_status status = kept ? sl_exact_scan(state->exact, block, kept, 0, state->compared) : SL_OK;
    if (status != SL_OK) return report_row(state, block, kept, row, status);
    state->compared += kept;
    return EXIT_DONE;
}

static int scan_base(truth_state *state) {
    const size_t n = state->inputs.base->n;
    const double start = now_seconds();
    progress_begin(&state->progress, "scanning", "vectors", n, state->options->progress);
    int result = truth_read_blocks(&state->inputs, 0, n, TRUTH_BLOCK, scan_block, state);
    progress_end(&state->progress, result == EXIT_DONE);
    state->scan_s = now_seconds() - start;
    return result;
}

/* Turns numbers of compared rows into ids. */
static void name_rows(const truth_state *state, uint64_t *found, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (found[i] == SL_NO_ID) continue;
        if (state->rows) found[i] = state->rows[found[i]];
        if (state->base_ids) found[i] = state->base_ids[found[i]];
    }
}

static int write_results(const truth_state *state) {
    size_t k = state->options->k, nq = state->inputs.queries->n;
    uint64_t *ids = allocate(nq, k * sizeof *ids);
    float *scores = allocate(nq, k * sizeof *scores);
    results *results = NULL;
    int result = ids && scores ? EXIT_DONE : EXIT_FAILED;
    if (result == EXIT_DONE) {
        sl_status status = sl_exact_results(state->exact, ids, scores);
        if (status != SL_OK) result = report_status(state->inputs.base_path, status);
    }
    if (result == EXIT_DONE) name_rows(state, ids, nq * k);
    if (result == EXIT_DONE) result = results_create(state->options->output, state->options->scores, nq, k, &results);
    if (result == EXIT_DONE) result = results_append(results, ids, scores, nq);
    if (result == EXIT_DONE) {
        result = results_commit(results);
        results = NULL;
    }
    results_discard(results);
    free(ids);
    free(scores);
    return result;
}

static int print_result(const truth_state *state) {
    double pairs = (double)state->compared * (double)state->inputs.queries->n;
    double rate = state->scan_s > 0 ? pairs / state->scan_s : 0;
    if (state->options->json) {
        json json;
        json_begin(&json, stdout);
        json_count(&json, "n", state->inputs.base->n);
        json_count(&json, "dim", state->inputs.base->dim);
        json_text(&json, "metric", sl_metric_name((sl_metric)state->options->metric));
        json_text(&json, "input", element_name(state->inputs.type));
        json_count(&json, "queries", state->inputs.queries->n);
        json_count(&json, "k", state->options->k);
        json_count(&json, "threads", thread_count(state->options->threads));
        json_real(&json, "scan_s", state->scan_s);
        json_real(&json, "pairs_per_s", rate);
        json_text(&json, "ids", state->options->ids);
        json_text(&json, "filter", state->options->filter.path);
        json_count(&json, "compared", state->compared);
        json_text(&json, "output", state->options->output);
        json_end(&json);
    } else
        printf("%s: the %zu nearest of %zu vectors for %zu queries, %s; %.1f s, %.3g pairs/s\n", state->options->output,
               state->options->k, state->compared, state->inputs.queries->n,
               sl_metric_name((sl_metric)state->options->metric), state->scan_s, rate);
    return report_stdout();
}

/* Loads the ids. Finds an id that outputs cannot hold, and ids that would make a wrong truth, before the scan. */
static int load_ids(truth_state *state) {
    const truth_options *options = state->options;
    size_t n = state->inputs.base->n;
    if (!options->ids) return EXIT_DONE;
    int status = vectors_read_ids(options->ids, state->inputs.base_path, &n, &state->base_ids);
    if (status == EXIT_DONE) status = ids_check_distinct(options->ids, state->base_ids, n);
    return status == EXIT_DONE ? results_check_ids(options->output, state->base_ids, n) : status;
}

/* Reads the filter's inputs: its ids in rising order, the words of the base's rows. */
static int load_filter(truth_state *state) {
    const truth_options *options = state->options;
    const char *path = options->filter.path;
    size_t n = state->inputs.base->n;
    int status = EXIT_DONE;
    if (!filter_is_asked(&options->filter)) return EXIT_DONE;
    if (path) status = vectors_read_list(path, &state->allowed_count, &state->allowed);
    if (status == EXIT_DONE && options->tags)
        status = vectors_read_column(options->tags, "tags", state->inputs.base_path, &n, &state->tags);
    if (status == EXIT_DONE && options->keys)
        status = vectors_read_column(options->keys, "keys", state->inputs.base_path, &n, &state->keys);
    if (status != EXIT_DONE) return status;
    if (path) qsort(state->allowed, state->allowed_count, sizeof *state->allowed, compare_ids);
    state->rows = allocate(state->inputs.base->n, sizeof *state->rows);
    return state->rows ? EXIT_DONE : EXIT_FAILED;
}

static int find_truth(truth_state *state) {
    const truth_options *options = state->options;
    const char *const inputs[] = {state->inputs.base_path,
                                  state->inputs.queries_path,
                                  options->ids,
                                  options->filter.path,
                                  options->tags,
                                  options->keys,
                                  NULL};
    int status = results_check(options->output, options->scores, inputs);
    if (status == EXIT_DONE) status = truth_inputs_open(&state->inputs);
    if (status == EXIT_DONE) status = load_ids(state);
    if (status == EXIT_DONE) status = load_filter(state);
    if (status == EXIT_DONE)
        status = truth_exact_create(&state->inputs, 0, state->inputs.queries->n, options->threads, &state->progress,
                                    &state->exact);
    if (status == EXIT_DONE) status = scan_base(state);
    if (status == EXIT_DONE) status = write_results(state);
    return status == EXIT_DONE ? print_result(state) : status;
}

static int run_truth(const command *self, int argc, char **argv) {
    truth_options options = {.filter = FILTER_CHOICE_ALL};
    const char *paths[2];
    OPTIONS_PARSE(self, argc, argv, &options, paths);
    if (filter_check(&options.filter) != EXIT_DONE) return EXIT_USAGE;
    if (!options.tags != !filter_asks_tags(&options.filter)) return report_usage("--tags goes with masks of tags");
    if (!options.keys != !filter_asks_keys(&options.filter))
        return report_usage("--keys goes with --key-min and --key-max");
    truth_state state = {
        .options = &options,
        .inputs = {
            .base_path = paths[0], .queries_path = paths[1], .metric = (sl_metric)options.metric, .k = options.k}};
    int status = find_truth(&state);
    sl_exact_free(state.exact);
    truth_inputs_close(&state.inputs);
    free(state.base_ids);
    free(state.allowed);
    free(state.tags);
    free(state.keys);
    free(state.rows);
    return status;
}

static const char *const operands[] = {"BASE", "QUERIES", NULL};

static const option truth_table[] = {
    {'k', NULL, OPTION_COUNT, "N", 1, offsetof(truth_options, k), "Neighbours a query."},
    {0, "metric", OPTION_WORD, "ip|cosine|l2", 1, offsetof(truth_options, metric), "As for 'shortlist build'."},
    {'o', "output", OPTION_TEXT, "TRUTH.ibin", 1, offsetof(truth_options, output),
     "The neighbours' row numbers, or ids with --ids, best first, one row a query. .ibin and .ivecs hold them in 32 "
     "bits, .npy in 64."},
    {0, "ids", OPTION_TEXT, "FILE", 0, offsetof(truth_options, ids),
     "The ids of the vectors of BASE, the file that 'shortlist build --ids' took: a .npy or .ibin file of one column "
     "of whole numbers. Without --ids the truth is of row numbers. Row numbers are the ids of an index that was built "
     "without --ids."},
    {0, "filter", OPTION_TEXT, "FILE", 0, offsetof(truth_options, filter.path),
     "Compare with the vectors of these ids alone: a .npy or .ibin file of one column of whole numbers. If fewer than "
     "-k are left, the rows are filled up with -1, or 2^64-1 in a .npy file. 'shortlist eval --filter' takes the "
     "truth."},
    {0, "tags", OPTION_TEXT, "FILE", 0, offsetof(truth_options, tags),
     "The tag words of the vectors of BASE, the file that 'shortlist build --tags' took, for the masks below."},
    {0, "keys", OPTION_TEXT, "FILE", 0, offsetof(truth_options, keys),
     "The keys of the vectors of BASE, the file that 'shortlist build --keys' took, for the range below."},
    OPTION_FILTER_WORDS(truth_options, "Goes with --tags.", "Goes with --keys."),
    {0, "scores", OPTION_TEXT, "FILE.fbin", 0, offsetof(truth_options, scores),
     "The neighbours' scores, in the same shape; .fbin, .fvecs or .npy."},
    OPTION_THREADS(truth_options, "Threads to scan with; 0 (default) takes all."),
    OPTION_PROGRESS(truth_options),
    OPTION_JSON(truth_options),
    OPTION_LAST};

const command command_truth = {
    .name = "truth",
    .summary = "find the true neighbours by comparing everything",
    .synopsis = "shortlist truth BASE QUERIES -k N --metric ip|cosine|l2 -o TRUTH.ibin [--ids FILE] [--filter FILE] "
                "[--tags FILE] [--any-tags MASK] [--all-tags MASK] [--none-tags MASK] [--keys FILE] [--key-min KEY] "
                "[--key-max KEY] [--scores FILE.fbin] [--threads N] [--progress] [--json]",
    .description =
        "Compares each query with each vector of BASE, and writes the row numbers of the -k nearest. BASE is read in "
        "blocks and need not fit in memory. Equal scores are ordered by row number, so the result is the same on every "
        "machine. 'shortlist eval' and 'shortlist tune' measure recall against it. For an index with ids of its own "
        "(build --ids) they need those ids in place of row numbers: --ids.\n"
        "Vector files are " VECTORS_READ_ENDINGS ". From an .hdf5 file the dataset train is BASE and test QUERIES.\n",
    .examples = "shortlist truth base.fbin queries.fbin -k 100 --metric cosine -o truth.ibin\n"
                "shortlist truth items.npy queries.npy -k 100 --metric ip --ids ids.npy -o truth.npy\n"
                "shortlist truth base.fbin queries.fbin -k 10 --metric l2 --tags tags.npy --any-tags 6 -o some.ibin\n"
                "shortlist truth sift.hdf5 sift.hdf5 -k 10 --metric l2 -o truth.ibin --scores distances.fbin\n",
    .operands = operands,
    .options = truth_table,
    .run = run_truth,
};
