#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/report.h"
#include "cli/files/vectors.h"
#include "cli/index/commands.h"
#include "cli/index/description.h"
#include "cli/index/open_save.h"

#include <stdlib.h>

typedef struct delete_options {
    const char *ids;
    size_t wait;
    int progress, json;
} delete_options;

typedef struct delete_state {
    const delete_options *options;
    const char *path;
    sl_index *index;
    sl_index_stats stats;
    uint64_t *ids;
    size_t count;
    double save_s;
} delete_state;

static int delete_ids(const delete_state *state) {
    const sl_status status = sl_index_delete(state->index, state->ids, state->count);
    return status == SL_OK ? EXIT_DONE : report_status(state->options->ids, status);
}

/* After the save, which may leave deleted vectors out. */
static int count_deleted(delete_state *state) {
    const sl_status status = sl_index_get_stats(state->index, &state->stats);
    return status == SL_OK ? EXIT_DONE : report_status(state->path, status);
}

static int print_result(const delete_state *state) {
    if (state->options->json) {
        json json;
        json_begin(&json, stdout);
        json_text(&json, "index", state->path);
        json_index(&json, &state->stats);
        json_count(&json, "removed", state->count);
        json_real(&json, "save_s", state->save_s);
        json_end(&json);
    } else {
        printf("%s: %zu deleted now; ", state->path, state->count);
        print_index(&state->stats);
    }
    return report_stdout();
}

static int delete_and_save(delete_state *state) {
    const delete_options *options = state->options;
    int status = output_check_name(state->path, (const char *const[]){options->ids, NULL});
    if (status == EXIT_DONE) status = vectors_read_ids(options->ids, NULL, &state->count, &state->ids);
    if (status == EXIT_DONE)
        status = open_to_change((changing){state->path, SL_PLACE_DRAM, options->wait, options->progress}, &state->index,
                                &state->stats);
    if (status == EXIT_DONE) status = delete_ids(state);
    if (status == EXIT_DONE) status = keep_changes(state->index, state->path, options->progress, &state->save_s);
    if (status == EXIT_DONE) status = count_deleted(state);
    return status == EXIT_DONE ? print_result(state) : status;
}

static int run_delete(const command *self, int argc, char **argv) {
    delete_options options = {.wait = WAIT_DEFAULT};
    delete_state state = {.options = &options};
    OPTIONS_PARSE(self, argc, argv, &options, &state.path);
    int status = delete_and_save(&state);
    sl_index_free(state.index);
    free(state.ids);
    return status;
}

static const char *const operands[] = {"INDEX", NULL};

static const option delete_table[] = {{0, "ids", OPTION_TEXT, "FILE", 1, offsetof(delete_options, ids),
                                       "The ids to delete: a .npy or .ibin file of one column of whole numbers."},
                                      OPTION_WAIT(delete_options),
                                      OPTION_PROGRESS(delete_options),
                                      OPTION_JSON(delete_options),
                                      OPTION_LAST};

const command command_delete = {
    .name = "delete",
    .summary = "delete vectors of an index by their ids",
    .synopsis = "shortlist delete INDEX --ids FILE [--wait SECONDS] [--progress] [--json]",
    .description = "Deletes the vectors of these ids: all of them or none. The command deletes none where an id is not "
                   "in the index or comes twice. No later search returns the vectors, and their ids may be added "
                   "again. An INDEX that was built with --room is changed in its file. Any other INDEX is read into "
                   "memory, and the new whole takes its place.\n"
                   "Deleted vectors leave the graph once there are enough of them, and later adds use their memory. "
                   "'shortlist compact' takes out the rest. Until then searches still walk through them. "
                   "'shortlist info' counts deleted vectors.\n",
    .examples = "shortlist delete base.sl --ids gone.npy\n"
                "shortlist delete base.sl --ids gone.ibin --json\n",
    .operands = operands,
    .options = delete_table,
    .run = run_delete,
};
