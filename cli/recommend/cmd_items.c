#include "cli/common/clock.h"
#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/save_handle.h"
#include "cli/files/vectors.h"
#include "cli/ranker/ranking_inputs.h"
#include "cli/recommend/commands.h"

#include <stdlib.h>

/* Rows of an update that are read and replaced at a time. */
#define BLOCK_ROWS 8192

typedef struct items_options {
    const char *output, *id, *update, *delete_ids;
    size_t wait;
    int partial, progress, json;
} items_options;

typedef struct items_state {
    const items_options *options;
    const char *data_path, *output;
    sl_items *items;
    csv_file changes;
    uint64_t *deleted_ids;
    size_t updated, deleted, before; /* rows of the update; ids deleted; items before all changes */
    double read_s, save_s;
} items_state;

static int delete_items(items_state *state) {
    const char *path = state->options->delete_ids;
    int result = vectors_read_list(path, &state->deleted, &state->deleted_ids);
    if (result != EXIT_DONE) return result;
    sl_status status = sl_items_delete(state->items, state->deleted_ids, state->deleted);
    return status == SL_OK ? EXIT_DONE : report_status(path, status);
}

static int update_items(items_state *state) {
    sl_status (*const update)(sl_items *, const sl_table *) = state->options->partial ? sl_items_set : sl_items_update;
    progress progress;
    sl_table block = {.rows = 1};
    int result = csv_open(&state->changes, state->options->update, NULL, NULL);
    if (result != EXIT_DONE) return result;
    progress_begin(&progress, "updating", "rows", 0, state->options->progress);
    while (result == EXIT_DONE) {
        result = csv_next(&state->changes, BLOCK_ROWS, &block);
        if (result != EXIT_DONE || !block.rows) break;
        sl_status status = update(state->items, &block);
        if (status != SL_OK) result = report_status(state->options->update, status);
        state->updated += block.rows;
        if (progress_step(&progress, state->updated, 0) && result == EXIT_DONE) result = report_interrupted();
    }
    progress_end(&progress, result == EXIT_DONE);
    return result;
}

static sl_status save_items(void *handle, const char *path, const sl_save_params *params) {
    return sl_items_save(handle, path, params);
}

static void print_changes(const items_state *state, size_t rows, size_t added) {
    printf("%s: %zu items", state->output, rows);
    if (state->options->delete_ids) printf("; %zu deleted", state->deleted);
    if (state->options->partial)
        printf("; %zu rows changed", state->updated);
    else if (state->options->update)
        printf("; %zu rows replaced, %zu added", state->updated - added, added);
    putchar('\n');
}

static int print_result(const items_state *state) {
    const size_t rows = sl_items_size(state->items), added = rows + state->deleted - state->before;
    if (state->options->json) {
        json json;
        json_begin(&json, stdout);
        json_count(&json, "rows", rows);
        json_count(&json, "updated", state->updated);
        json_count(&json, "added", added);
        json_count(&json, "deleted", state->deleted);
        json_real(&json, "read_s", state->read_s);
        json_real(&json, "save_s", state->save_s);
        json_text(&json, "output", state->output);
        json_end(&json);
    } else
        print_changes(state, rows, added);
    return report_stdout();
}

static int make_items(items_state *state) {
    const items_options *options = state->options;
    /* An updated table may replace its own file: it is saved beside the file and then renamed. */
    int in_place = !has_ending(state->data_path, ".csv");
    int own = in_place && is_same_file(state->data_path, state->output);
    const char *const named[] = {in_place ? NULL : state->data_path, options->update, options->delete_ids};
    const char *inputs[] = {NULL, NULL, NULL, NULL};
    for (size_t i = 0, given = 0; i < sizeof named / sizeof *named; i++)
        if (named[i]) inputs[given++] = named[i];
    int status = output_check_name(state->output, inputs);
    if (status == EXIT_DONE) status = output_try(state->output, own);
    double start = now_seconds();
    /* A table that is saved under another name does not change. */
    const items_opening how = {
        .id = options->id, .progress = options->progress, .to_change = own, .wait = options->wait};
    if (status == EXIT_DONE) status = open_items(state->data_path, &how, &state->items);
    if (status != EXIT_DONE) return status;
    state->before = sl_items_size(state->items);
    if (options->delete_ids) status = delete_items(state);
    if (options->update && status == EXIT_DONE) status = update_items(state);
    state->read_s = now_seconds() - start;
    if (status == EXIT_DONE)
        status = save_handle(save_items, state->items, state->output, state->options->progress, &state->save_s);
    return status == EXIT_DONE ? print_result(state) : status;
}

static int run_items(const command *self, int argc, char **argv) {
    items_options options = {.wait = WAIT_DEFAULT};
    const char *path;
    OPTIONS_PARSE(self, argc, argv, &options, &path);
    items_state state = {.options = &options, .data_path = path, .output = options.output ? options.output : path};
    if (!options.output && has_ending(path, ".csv")) return report_usage("--output ITEMS.sli is missing");
    if (!options.output && !options.update && !options.delete_ids)
        return report_usage("--update CSV, --delete IDS or --output ITEMS.sli is missing");
    if (options.partial && !options.update) return report_usage("--partial is of --update CSV, which is missing");
    int status = make_items(&state);
    csv_close(&state.changes);
    sl_items_free(state.items);
    free(state.deleted_ids);
    return status;
}

static const char *const operands[] = {"DATA", NULL};

static const option items_table[] = {
    {'o', "output", OPTION_TEXT, "ITEMS.sli", 0, offsetof(items_options, output),
     "The item table. The file appears whole or not at all. Where DATA is an item table this may be left out: the new "
     "table then replaces DATA."},
    {0, "id", OPTION_TEXT, "COLUMN", 0, offsetof(items_options, id),
     "The column of the items' ids (default id): whole numbers, the same as in the index."},
    {0, "update", OPTION_TEXT, "CSV", 0, offsetof(items_options, update),
     "Rows that replace the rows of the same ids, and new rows."},
    {0, "partial", OPTION_FLAG, NULL, 0, offsetof(items_options, partial),
     "The rows of --update set only the columns that CSV has, and leave the others. DATA must have every id."},
    {0, "delete", OPTION_TEXT, "IDS", 0, offsetof(items_options, delete_ids),
     "The ids to delete, before an update: a .npy or .ibin file of one column of whole numbers."},
    OPTION_WAIT(items_options),
    OPTION_PROGRESS(items_options),
    OPTION_JSON(items_options),
    OPTION_LAST};

const command command_items = {
    .name = "items",
    .summary = "build or update a table of items",
    .synopsis =
        "shortlist items DATA [-o ITEMS.sli] [--id COLUMN] [--update CSV [--partial]] [--delete IDS] [--wait SECONDS] "
        "[--progress] [--json]",
    .description =
        "Builds a table of the features of each item, by id, from the rows of DATA, a .csv file with a header. Where "
        "DATA is such a table, replaces and adds the rows of --update. Columns that an update lacks are missing values "
        "in its rows, unless the update is --partial. 'shortlist recommend' takes the items' features, and the columns "
        "to show, from the table.\n"
        "Items that --delete names are gone from the table. 'shortlist recommend' leaves them out of its answers, "
        "until "
        "an update adds them. Delete their vectors from the index too ('shortlist delete').\n"
        "The command ends and leaves every file as it was where an id comes twice or is no whole number, and where "
        "--partial or --delete names one that DATA lacks.\n",
    .examples = "shortlist items films.csv -o films.sli --id film\n"
                "shortlist items films.sli --update new.csv\n"
                "shortlist items films.sli --update prices.csv --partial --delete gone.npy\n",
    .operands = operands,
    .options = items_table,
    .run = run_items,
};
