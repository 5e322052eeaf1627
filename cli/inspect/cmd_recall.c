#include "cli/common/clock.h"
#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/index/description.h"
#include "cli/index/open_save.h"
#include "cli/inspect/commands.h"

#include <stdio.h>

typedef struct recall_options {
    size_t sample, k, ef;
    double seconds;
    uint64_t seed;
    int place, progress, json;
} recall_options;

static int print_recall(const char *path, const recall_options *options, const sl_index_stats *stats,
                        const sl_recall_report *found, double seconds) {
    if (options->json) {
        json json;
        json_begin(&json, stdout);
        json_text(&json, "index", path);
        json_index(&json, stats);
        json_count(&json, "k", options->k);
        json_count(&json, "ef", options->ef);
        json_count(&json, "sampled", found->sampled);
        json_real(&json, "recall", found->recall);
        json_real(&json, "standard_error", found->standard_error);
        json_count(&json, "lost", found->lost);
        json_real(&json, "recall_s", seconds);
        json_end(&json);
    } else {
        printf("%s: recall@%zu %.4f +- %.4f at ef %zu, of %zu vectors; %zu lost\n", path, options->k, found->recall,
               found->standard_error, options->ef, found->sampled, found->lost);
    }
    return report_stdout();
}

static int measure_recall(const char *path, const recall_options *options, sl_index *index,
                          const sl_index_stats *stats) {
    sl_recall_params params;
    sl_recall_report found = {.struct_size = sizeof found};
    progress progress;
    sl_recall_params_init(&params);
    params.sample = options->sample;
    params.k = options->k;
    params.ef = options->ef;
    params.seconds = options->seconds;
    params.seed = options->seed;
    params.progress = progress_step;
    params.progress_ctx = &progress;
    progress_begin(&progress, "measuring recall", "vectors", options->sample, options->progress);
    const double start = now_seconds();
    sl_status status = sl_index_recall(index, &params, &found);
    progress_end(&progress, status == SL_OK);
    if (status != SL_OK) return report_status(path, status);
    return print_recall(path, options, stats, &found, now_seconds() - start);
}

static int run_recall(const command *self, int argc, char **argv) {
    sl_recall_params defaults;
    sl_recall_params_init(&defaults);
    recall_options options = {
        .sample = defaults.sample, .k = defaults.k, .ef = defaults.ef, .seconds = 0, .place = SL_PLACE_MAP};
    const char *path;
    sl_index *index;
    sl_index_stats stats;
    OPTIONS_PARSE(self, argc, argv, &options, &path);
    const opening how = {.place = (sl_place)options.place, .tier = SL_TIER_NONE, .progress = options.progress};
    int status = open_index(path, how, &index, &stats);
    if (status == EXIT_DONE) status = measure_recall(path, &options, index, &stats);
    sl_index_free(index);
    return status;
}

static const char *const operands[] = {"INDEX", NULL};

static const option recall_table[] = {
    {0, "sample", OPTION_COUNT, "N", 0, offsetof(recall_options, sample), "Number of vectors to draw (default 200)."},
    {'k', NULL, OPTION_COUNT, "K", 0, offsetof(recall_options, k), "Neighbours of each (default 10)."},
    {0, "ef", OPTION_COUNT, "N", 0, offsetof(recall_options, ef), "ef_search of the searches (default 64)."},
    {0, "seconds", OPTION_REAL, "S", 0, offsetof(recall_options, seconds),
     "Draw no more vectors after this time (default 0: no limit)."},
    {0, "seed", OPTION_U64, "N", 0, offsetof(recall_options, seed),
     "Equal seeds draw equal vectors of an index that did not change (default 0)."},
    {0, "place", OPTION_WORD, "dram|map|pmem", 0, offsetof(recall_options, place),
     "Open the index copied into memory (dram), mapped (map, default) or mapped from persistent memory (pmem)."},
    OPTION_PROGRESS(recall_options),
    OPTION_JSON(recall_options),
    OPTION_LAST};

const command command_recall = {
    .name = "recall",
    .summary = "measure what searches for stored vectors find",
    .synopsis = "shortlist recall INDEX [--sample N] [-k K] [--ef N] [--seconds S] [--seed N] [--place dram|map|pmem] "
                "[--progress] [--json]",
    .description =
        "Draws stored vectors, searches for the K nearest of each, and compares with all vectors: one pass over the "
        "index for each drawn vector. Prints the mean share of the nearest that was found, by the codes that searches "
        "compare, and its standard error. The vector itself does not count. A vector counts as lost if less than half "
        "of its nearest are found. The file may be written meanwhile.\n"
        "'shortlist check' verifies the whole file, and 'shortlist eval' measures with queries and truth of your "
        "own.\n",
    .examples = "shortlist recall base.sl\nshortlist recall live.sl --sample 1000 --seconds 10 --json\n",
    .operands = operands,
    .options = recall_table,
    .run = run_recall,
};
