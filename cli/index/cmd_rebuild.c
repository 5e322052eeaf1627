#include "cli/common/clock.h"
#include "cli/common/hash.h"
#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/size_text.h"
#include "cli/common/system.h"
#include "cli/index/commands.h"
#include "cli/index/description.h"
#include "cli/index/open_save.h"

#include <stdlib.h>
#include <string.h>

typedef struct rebuild_options {
    const char *output;
    size_t m, ef_build, threads, room, max_memory, wait;
    int builder, progress, json;
} rebuild_options;

typedef struct rebuild_state {
    const rebuild_options *options;
    const char *path, *output; /* equal if the new file replaces the old one */
    sl_rebuild_report report;
    double seconds;
} rebuild_state;

static int report_rebuild(const rebuild_state *state, sl_status status) {
    if (status == SL_EBUSY && !strstr(sl_last_error(), ".work"))
        return report_failure("%s, or give more than %zu s of --wait", sl_last_error(), state->options->wait);
    return report_bounded(state->path, state->output, state->options->max_memory, status);
}

static int rebuild_index(rebuild_state *state) {
    const rebuild_options *options = state->options;
    progress progress;
    sl_rebuild_params params;
    sl_rebuild_params_init(&params);
    params.output = state->output == state->path ? NULL : state->output;
    params.m = options->m;
    params.ef_construction = options->ef_build;
    params.room = options->room;
    params.threads = options->threads;
    params.builder = (sl_builder)options->builder;
    params.wait_s = (double)options->wait;
    params.log = report_log(&params.log_ctx);
    params.progress = progress_step;
    params.progress_ctx = &progress;
    params.max_memory = options->max_memory;
    char *work;
    if (work_path(options->max_memory, state->output, &work) != EXIT_DONE) return EXIT_FAILED;
    params.work_path = work;
    state->report.struct_size = sizeof state->report;
    const double start = now_seconds();
    progress_begin(&progress, "rebuilding", "steps", 0, options->progress);
    sl_status status = sl_index_rebuild(state->path, &params, &state->report);
    progress_end(&progress, status == SL_OK);
    state->seconds = now_seconds() - start;
    free(work);
    return status == SL_OK ? EXIT_DONE : report_rebuild(state, status);
}

static int print_result(const rebuild_state *state) {
    const sl_rebuild_report *report = &state->report;
    const size_t before = report->n + report->deleted, threads = thread_count(state->options->threads);
    sl_index_stats stats;
    sl_index *index;
    file_hash hash;
    int status = open_index(state->output, (opening){.place = SL_PLACE_MAP, .tier = SL_TIER_NONE}, &index, &stats);
    if (status == EXIT_DONE) status = hash_file(state->output, report->room, &hash);
    if (status == EXIT_DONE && state->options->json) {
        json json;
        json_begin(&json, stdout);
        json_text(&json, "index", state->path);
        json_text(&json, "output", state->output);
        json_index(&json, &stats);
        json_count(&json, "n_before", before);
        json_count(&json, "bytes_before", report->bytes_before);
        json_count(&json, "bytes_after", report->bytes_after);
        json_count(&json, "room", report->room);
        json_text(&json, "layout", sl_layout_name(report->layout));
        json_text(&json, "linked_from", report->linked_from);
        json_real(&json, "rebuild_s", state->seconds);
        json_count(&json, "threads", threads);
        json_text(&json, "hash", hash_digits(&hash));
        json_end(&json);
    } else if (status == EXIT_DONE) {
        printf("%s: ", state->output);
        print_index(&stats);
        printf("%zu vectors of %zu are left, %s of %s; in %.1f s on %zu threads\n", report->n, before,
               text_of_size(report->bytes_after).text, text_of_size(report->bytes_before).text, state->seconds,
               threads);
        printf("linked from codes %s; codes, refinement, ids, tags and keys copied\n", report->linked_from);
        print_hash(&hash);
    }
    sl_index_free(index);
    return status == EXIT_DONE ? report_stdout() : status;
}

static int run_rebuild(const command *self, int argc, char **argv) {
    rebuild_options options = {.wait = WAIT_DEFAULT};
    const char *path;
    OPTIONS_PARSE(self, argc, argv, &options, &path);
    const int apart = options.output && !is_same_file(options.output, path);
    rebuild_state state = {.options = &options, .path = path, .output = apart ? options.output : path};
    const char *const inputs[] = {apart ? path : NULL, NULL};
    int status = output_check_name(state.output, inputs);
    if (status == EXIT_DONE) status = output_try(state.output, !apart);
    if (status == EXIT_DONE) status = rebuild_index(&state);
    return status == EXIT_DONE ? print_result(&state) : status;
}

static const char *const operands[] = {"INDEX", NULL};

static const option rebuild_table[] = {
    {'o', "output", OPTION_TEXT, "FILE", 0, offsetof(rebuild_options, output),
     "Put the new index here and leave INDEX as it is. Without it the new file takes the place of INDEX."},
    {0, "m", OPTION_COUNT, "N", 0, offsetof(rebuild_options, m), "Links a node, 2 to 256; 0 (default): as in INDEX."},
    {0, "ef-build", OPTION_COUNT, "N", 0, offsetof(rebuild_options, ef_build),
     "Work for a vector's links; 0 (default): as in INDEX."},
    {0, "builder", OPTION_WORD, "auto|insert|leaves", 0, offsetof(rebuild_options, builder),
     "How vectors get their links, as of 'shortlist build'."},
    OPTION_THREADS(rebuild_options, "Threads to link with; 0 (default) takes all."),
    {0, "room", OPTION_COUNT, "N", 0, offsetof(rebuild_options, room),
     "Make a file with room for N vectors in all, as of 'shortlist build'; no less than INDEX has room for. 0 "
     "(default): as INDEX."},
    {0, "max-memory", OPTION_BYTES, "BYTES", 0, offsetof(rebuild_options, max_memory),
     "Memory that the rebuild takes at most, as of 'shortlist build'."},
    OPTION_WAIT(rebuild_options),
    OPTION_PROGRESS(rebuild_options),
    OPTION_JSON(rebuild_options),
    OPTION_LAST};

const command command_rebuild = {
    .name = "rebuild",
    .summary = "make an index anew, without deleted vectors",
    .synopsis = "shortlist rebuild INDEX [-o FILE] [--m N] [--ef-build N] [--builder auto|insert|leaves] [--threads N] "
                "[--room N] [--max-memory BYTES] [--wait SECONDS] [--progress] [--json]",
    .description = "Makes a compact index with new links from INDEX. Use it after many adds and deletes, or if "
                   "'shortlist check' counts lost vectors. The new file takes the place of INDEX whole or not at all. "
                   "Others who have INDEX open go on with the old file until they open it again. Nobody changes INDEX "
                   "meanwhile: adds and deletes of others wait, and this command waits for theirs.\nCodes, refinement, "
                   "ids, tags and keys are copied exactly, so no base file is needed. The links come from comparing "
                   "the codes, and the output tells which. Layout and room stay, and ids go on as before. Settings "
                   "that 'shortlist tune' stored are not taken over: tune the new index. A damaged INDEX is refused.\n",
    .examples = "shortlist rebuild base.sl\nshortlist rebuild live.sl --threads 4 --json\n"
                "shortlist rebuild base.sl -o new.sl --m 24\n",
    .operands = operands,
    .options = rebuild_table,
    .run = run_rebuild,
};
