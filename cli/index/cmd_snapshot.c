#include "cli/common/clock.h"
#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/index/commands.h"
#include "cli/index/description.h"
#include "cli/index/open_save.h"

typedef struct snapshot_options {
    const char *output;
    int progress, json;
} snapshot_options;

static int take_snapshot(const char *path, const snapshot_options *options, double *seconds) {
    progress progress;
    sl_snapshot_params params;
    sl_snapshot_params_init(&params);
    params.progress = progress_step;
    params.progress_ctx = &progress;
    double start = now_seconds();
    progress_begin(&progress, "copying", "bytes", 0, options->progress);
    sl_status status = sl_index_snapshot(path, options->output, &params);
    progress_end(&progress, status == SL_OK);
    *seconds = now_seconds() - start;
    return status == SL_OK ? EXIT_DONE : report_status(path, status);
}

static void print_json(const char *path, const char *copy, const sl_index_stats *stats, double seconds) {
    json json;
    json_begin(&json, stdout);
    json_text(&json, "index", path);
    json_text(&json, "copy", copy);
    json_index(&json, stats);
    json_real(&json, "snapshot_s", seconds);
    json_end(&json);
}

static int run_snapshot(const command *self, int argc, char **argv) {
    snapshot_options options = {0};
    const char *path;
    double seconds;
    OPTIONS_PARSE(self, argc, argv, &options, &path);
    sl_index *copy = NULL;
    sl_index_stats stats;
    int status = output_try(options.output, 1);
    if (status == EXIT_DONE) status = take_snapshot(path, &options, &seconds);
    /* Reads the facts from the copy, because the file may have changed since. */
    if (status == EXIT_DONE) status = open_index(options.output, (opening){.place = SL_PLACE_MAP}, &copy, &stats);
    if (status == EXIT_DONE) {
        if (options.json) {
            print_json(path, options.output, &stats, seconds);
        } else {
            printf("%s: ", options.output);
            print_index(&stats);
        }
        status = report_stdout();
    }
    sl_index_free(copy);
    return status;
}

static const char *const operands[] = {"INDEX", NULL};

static const option snapshot_table[] = {
    {'o', "output", OPTION_TEXT, "COPY", 1, offsetof(snapshot_options, output),
     "The copy. The file appears whole or not at all; a file of that name stays as it is until then."},
    OPTION_PROGRESS(snapshot_options),
    OPTION_JSON(snapshot_options),
    OPTION_LAST};

const command command_snapshot = {
    .name = "snapshot",
    .summary = "copy an index, also while it is being written",
    .synopsis = "shortlist snapshot INDEX -o COPY [--progress] [--json]",
    .description =
        "Copies INDEX to COPY. The copy stands on its own: whole, and without a log. Another process may write INDEX "
        "in place meanwhile. The copy has all that was synced before, perhaps some of the later syncs, and nothing "
        "half. The writer goes on, and does not empty its log until the copy is made. The copy also has all that a "
        "crashed writer had synced. Copying the file itself, by cp, gives none of this.\n"
        "Blocks are shared where the file system can (btrfs, xfs), so that a copy takes no time and no space. "
        "Elsewhere a hole in INDEX is a hole in COPY. A writer that has INDEX open in persistent memory keeps no log; "
        "no copy can be made meanwhile.\n",
    .examples = "shortlist snapshot base.sl -o backup.sl\nshortlist snapshot base.sl -o /backup/base.sl --json\n",
    .operands = operands,
    .options = snapshot_table,
    .run = run_snapshot,
};
