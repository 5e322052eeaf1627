#include "cli/common/clock.h"
#include "cli/common/hash.h"
#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/index/commands.h"
#include "cli/index/description.h"
#include "cli/index/open_save.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct merge_options {
    const char *output;
    size_t m, ef_build, threads, room, max_memory;
    int clash, builder, layout, progress, json;
} merge_options;

typedef struct merge_state {
    const merge_options *options;
    const char *const *paths;
    size_t count;
    sl_index *indexes[OPERANDS_MAX], *merged;
    double merge_s, save_s;
} merge_state;

static int open_all(merge_state *state) {
    sl_index_stats stats;
    int status = EXIT_DONE;
    for (size_t i = 0; i < state->count && status == EXIT_DONE; i++)
        status = open_index(state->paths[i], (opening){.place = SL_PLACE_MAP, .tier = SL_TIER_NONE}, &state->indexes[i],
                            &stats);
    return status;
}

/* Reports a message that has an index's number, with that index's path appended. */
static int report_numbered(const merge_state *state, const char *message) {
    static const char word[] = "index ";
    char named[2048];
    size_t used = 0;
    while (*message && used + 1 < sizeof named) {
        named[used++] = *message++;
        if (used < strlen(word) || strncmp(message - strlen(word), word, strlen(word)) != 0) continue;
        char *end;
        const size_t number = (size_t)strtoull(message, &end, 10);
        if (end == message || number >= state->count) continue;
        const int length = snprintf(named + used, sizeof named - used, "%zu (%s)", number, state->paths[number]);
        used += length < 0 ? 0 : (size_t)length < sizeof named - used ? (size_t)length : sizeof named - used - 1;
        message = end;
    }
    named[used] = '\0';
    return report_failure("%s", named);
}

static int report_merge(const merge_state *state, sl_status status) {
    if (strstr(sl_last_error(), "index ")) return report_numbered(state, sl_last_error());
    return report_bounded(state->options->output, state->options->output, state->options->max_memory, status);
}

static int merge_indexes(merge_state *state) {
    const merge_options *options = state->options;
    progress progress;
    sl_merge_params params;
    sl_merge_params_init(&params);
    params.m = options->m;
    params.ef_construction = options->ef_build;
    params.threads = options->threads;
    params.clash = (sl_clash)options->clash;
    params.builder = (sl_builder)options->builder;
    params.progress = progress_step;
    params.progress_ctx = &progress;
    params.max_memory = options->max_memory;
    char *work;
    if (work_path(options->max_memory, options->output, &work) != EXIT_DONE) return EXIT_FAILED;
    params.work_path = work;
    const double start = now_seconds();
    progress_begin(&progress, "merging", "vectors", 0, options->progress);
    sl_status status = sl_index_merge(state->indexes, state->count, &params, &state->merged);
    progress_end(&progress, status == SL_OK);
    state->merge_s = now_seconds() - start;
    free(work);
    return status == SL_OK ? EXIT_DONE : report_merge(state, status);
}

static int print_result(const merge_state *state) {
    const merge_options *options = state->options;
    sl_index_stats stats = {.struct_size = sizeof stats};
    sl_status status = sl_index_get_stats(state->merged, &stats);
    if (status != SL_OK) return report_status(options->output, status);
    file_hash hash;
    if (hash_file(options->output, options->room, &hash) != EXIT_DONE) return EXIT_FAILED;
    const double rate = state->merge_s > 0 ? (double)stats.n / state->merge_s : 0;
    if (options->json) {
        json json;
        json_begin(&json, stdout);
        json_text(&json, "output", options->output);
        json_text(&json, "hash", hash_digits(&hash));
        json_index(&json, &stats);
        json_count(&json, "indexes", state->count);
        json_real(&json, "merge_s", state->merge_s);
        json_real(&json, "save_s", state->save_s);
        json_real(&json, "rows_per_s", rate);
        json_count(&json, "threads", thread_count(options->threads));
        json_end(&json);
    } else {
        printf("%s: ", options->output);
        print_index(&stats);
        printf("merged from %zu index%s in %.1f s, %.0f vectors/s on %zu threads\n", state->count,
               state->count == 1 ? "" : "es", state->merge_s, rate, thread_count(options->threads));
        print_hash(&hash);
    }
    return report_stdout();
}

static int merge_and_save(merge_state *state) {
    const merge_options *options = state->options;
    int status = output_check(options->output, state->paths);
    if (status == EXIT_DONE) status = open_all(state);
    if (status == EXIT_DONE) status = merge_indexes(state);
    if (status == EXIT_DONE)
        status = save_index((saving){state->merged, options->room, (sl_layout)options->layout}, options->output,
                            options->progress, &state->save_s);
    return status == EXIT_DONE ? print_result(state) : status;
}

static int run_merge(const command *self, int argc, char **argv) {
    merge_options options = {0};
    const char *paths[OPERANDS_MAX + 1] = {NULL};
    OPTIONS_PARSE(self, argc, argv, &options, paths);
    merge_state state = {.options = &options, .paths = paths};
    while (paths[state.count])
        state.count++;
    int status = merge_and_save(&state);
    for (size_t i = 0; i < state.count; i++)
        sl_index_free(state.indexes[i]);
    sl_index_free(state.merged);
    return status;
}

static const char *const operands[] = {"INDEX", "[INDEX...]", NULL};

static const option merge_table[] = {
    {'o', "output", OPTION_TEXT, "INDEX", 1, offsetof(merge_options, output),
     "The new index file, none of those merged. The file appears whole or not at all."},
    {0, "clash", OPTION_WORD, "refuse|later", 0, offsetof(merge_options, clash),
     "What an id in several indexes does: refuse (default) ends the command, later takes the vectors of the last index "
     "that has it. In indexes that were built with --multi an id keeps the vectors of all, unless later is given."},
    {0, "m", OPTION_COUNT, "N", 0, offsetof(merge_options, m),
     "Links a node, 2 to 256; 0 (default): as in the first index."},
    {0, "ef-build", OPTION_COUNT, "N", 0, offsetof(merge_options, ef_build),
     "Work for a vector's links; 0 (default): as in the first index."},
    {0, "builder", OPTION_WORD, "auto|insert|leaves", 0, offsetof(merge_options, builder),
     "How vectors get their links. auto (default) joins the graphs of two or three indexes of one size, or of a large "
     "one and small ones. All have the same m and ef_construction, and at least half of their vectors. Joining takes "
     "a third to half of the time. insert, leaves, and auto for other indexes: all links anew, as of 'shortlist "
     "build'."},
    OPTION_THREADS(merge_options, "Threads to merge with; 0 (default) takes all."),
    {0, "room", OPTION_COUNT, "N", 0, offsetof(merge_options, room),
     "Make a file with room for N vectors in all, as of 'shortlist build'."},
    {0, "layout", OPTION_WORD, "arrays|records", 0, offsetof(merge_options, layout),
     "Place of codes, links and ids in the file, as of 'shortlist build'."},
    {0, "max-memory", OPTION_BYTES, "BYTES", 0, offsetof(merge_options, max_memory),
     "Memory that the merge takes at most, as of 'shortlist build'."},
    OPTION_PROGRESS(merge_options),
    OPTION_JSON(merge_options),
    OPTION_LAST};

const command command_merge = {
    .name = "merge",
    .summary = "make one index of several, or one index anew",
    .synopsis =
        "shortlist merge INDEX [INDEX...] -o INDEX [--clash refuse|later] [--m N] [--ef-build N] [--builder "
        "auto|insert|leaves] [--threads N] [--room N] [--layout arrays|records] [--max-memory BYTES] [--progress] "
        "[--json]",
    .description =
        "Makes a new index of all vectors of up to 64 indexes, which stay as they are. The indexes have one metric, "
        "dimension, type of vectors, codes and refinement, and tags and keys all or none. Codes, ids, tags and keys "
        "are copied exactly, so no base file is needed. Deleted vectors are left out. Settings that 'shortlist tune' "
        "stored are not taken over. Prints the hash of the new file, as 'shortlist build' does.\n"
        "One INDEX gives a compact one with new links. 'shortlist rebuild' puts that in the place of "
        "INDEX, and keeps others from changing INDEX meanwhile.\n",
    .examples = "shortlist merge monday.sl tuesday.sl -o both.sl\n"
                "shortlist merge base.sl changed.sl -o all.sl --clash later --json\n",
    .operands = operands,
    .options = merge_table,
    .run = run_merge,
};
