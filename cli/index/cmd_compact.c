#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/index/commands.h"
#include "cli/index/description.h"
#include "cli/index/open_save.h"

typedef struct compact_options {
    size_t wait;
    int progress, json;
} compact_options;

typedef struct compact_state {
    const compact_options *options;
    const char *path;
    sl_index *index;
    sl_index_stats stats;
    size_t before; /* deleted vectors, before */
    double save_s;
} compact_state;

static int compact_index(compact_state *state) {
    sl_compact_params params;
    progress progress;
    sl_compact_params_init(&params);
    params.progress = progress_step;
    params.progress_ctx = &progress;
    state->before = state->stats.deleted;
    progress_begin(&progress, "compacting", "vectors", state->stats.deleted, state->options->progress);
    sl_status status = sl_index_compact(state->index, &params);
    progress_end(&progress, status == SL_OK);
    if (status == SL_OK) status = sl_index_get_stats(state->index, &state->stats);
    return status == SL_OK ? EXIT_DONE : report_status(state->path, status);
}

static int print_result(const compact_state *state) {
    if (state->options->json) {
        json json;
        json_begin(&json, stdout);
        json_text(&json, "index", state->path);
        json_index(&json, &state->stats);
        json_count(&json, "taken_out", state->before - state->stats.deleted);
        json_real(&json, "save_s", state->save_s);
        json_end(&json);
    } else {
        printf("%s: %zu deleted vectors taken out; ", state->path, state->before - state->stats.deleted);
        print_index(&state->stats);
    }
    return report_stdout();
}

static int compact_and_save(compact_state *state) {
    const compact_options *options = state->options;
    int status = open_to_change((changing){state->path, SL_PLACE_DRAM, options->wait, options->progress}, &state->index,
                                &state->stats);
    if (status == EXIT_DONE) status = compact_index(state);
    if (status == EXIT_DONE) status = keep_changes(state->index, state->path, options->progress, &state->save_s);
    return status == EXIT_DONE ? print_result(state) : status;
}

static int run_compact(const command *self, int argc, char **argv) {
    compact_options options = {.wait = WAIT_DEFAULT};
    compact_state state = {.options = &options};
    OPTIONS_PARSE(self, argc, argv, &options, &state.path);
    int status = compact_and_save(&state);
    sl_index_free(state.index);
    return status;
}

static const char *const operands[] = {"INDEX", NULL};

static const option compact_table[] = {OPTION_WAIT(compact_options), OPTION_PROGRESS(compact_options),
                                       OPTION_JSON(compact_options), OPTION_LAST};

const command command_compact = {
    .name = "compact",
    .summary = "take deleted vectors out of an index",
    .synopsis = "shortlist compact INDEX [--wait SECONDS] [--progress] [--json]",
    .description =
        "Takes the deleted vectors out of INDEX. Links that led over them lead elsewhere then, and all other "
        "links stay. That takes a fraction of the time of a rebuild. INDEX is read into memory, and the new "
        "whole takes its place.\n"
        "A file that was built with --room is changed in place, beside its readers. Later adds use the places of the "
        "deleted vectors, and blocks that hold nothing else go back to the file system. 'shortlist rebuild' makes such "
        "a file smaller.\n",
    .examples = "shortlist compact base.sl\n"
                "shortlist compact base.sl --json\n",
    .operands = operands,
    .options = compact_table,
    .run = run_compact,
};
