#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/index/add_vectors.h"
#include "cli/index/commands.h"
#include "cli/index/description.h"
#include "cli/index/open_save.h"
#include "cli/index/sampled_check.h"

#include <stdlib.h>

typedef struct add_options {
    const char *ids;
    word_files words;
    size_t threads, wait;
    int replace, replace_one, progress, json;
} add_options;

typedef struct add_state {
    const add_options *options;
    const char *index_path, *base_path;
    sl_index_stats stats;
    addition addition;
    uint64_t *ids;
    double save_s;
} add_state;

static int report_refused(void *ctx, sl_status status) {
    const add_state *state = ctx;
    return report_status(state->base_path, status);
}

static int load_rows(add_state *state) {
    addition *addition = &state->addition;
    const char *ids = state->options->ids;
    int status = vectors_open(state->base_path, VECTORS_BASE, &addition->base);
    if (status == EXIT_DONE) status = vectors_check_metric(addition->base, state->stats.metric);
    if (status == EXIT_DONE) status = vectors_match_dim(addition->base, state->stats.dim, state->index_path);
    if (status == EXIT_DONE)
        status = vectors_match_type(addition->base, state->stats.dtype, state->index_path, &addition->type);
    if (status != EXIT_DONE) return status;
    size_t n = addition->base->n;
    if (ids) status = vectors_read_ids(ids, state->base_path, &n, &state->ids);
    addition->ids = state->ids;
    if (status == EXIT_DONE) status = addition_read_words(addition, state->base_path, &state->options->words);
    return status == EXIT_DONE ? addition_prepare(addition, state->index_path, 0) : status;
}

/* This check comes before the work. */
static int check_tags_and_keys(const add_state *state) {
    const word_files *words = &state->options->words;
    const char *missing = words->tags && !state->stats.tags   ? "tags"
                          : words->keys && !state->stats.keys ? "keys"
                                                              : NULL;
    if (!missing) return EXIT_DONE;
    return report_failure("%s: has no %s; build it again with --%s, or leave --%s out", state->index_path, missing,
                          missing, missing);
}

/* Reserves memory for all rows at once. Growing step by step takes up to twice as much. */
static int reserve_rows(add_state *state) {
    size_t n = state->stats.n + state->stats.deleted + state->addition.base->n;
    sl_status status = sl_index_reserve(state->addition.index, n);
    return status == SL_OK ? EXIT_DONE : report_status(state->index_path, status);
}

static int print_result(const add_state *state) {
    const addition *addition = &state->addition;
    sl_index_stats stats = {.struct_size = sizeof stats};
    sl_status status = sl_index_get_stats(addition->index, &stats);
    sl_resolution resolution = {0};
    if (status != SL_OK) return report_status(state->index_path, status);
    size_t threads = thread_count(state->options->threads), added = addition->base->n;
    /* A few new vectors change little, and comparing them with all others takes long. */
    if (2 * added >= stats.n) (void)measure_resolution(state->index_path, addition->index, threads, &resolution);
    const size_t replaced = state->stats.n + added - stats.n;
    double rate = addition->add_s > 0 ? (double)added / addition->add_s : 0;
    if (state->options->json) {
        json json;
        json_begin(&json, stdout);
        json_text(&json, "index", state->index_path);
        json_index(&json, &stats);
        json_count(&json, "added", added);
        json_count(&json, "replaced", replaced);
        json_real(&json, "add_s", addition->add_s);
        json_real(&json, "read_s", addition->read_s);
        json_real(&json, "save_s", state->save_s);
        json_real(&json, "rows_per_s", rate);
        json_count(&json, "threads", threads);
        json_resolution(&json, resolution.unresolved, resolution.sampled);
        json_end(&json);
    } else {
        printf("%s: ", state->index_path);
        print_index(&stats);
        printf("%zu added in %.1f s, %.0f vectors/s on %zu threads", added, addition->add_s, rate, threads);
        if (state->addition.replace) printf("; %zu replaced", replaced);
        printf("\n");
    }
    (void)warn_of_resolution(state->index_path, &stats, resolution.unresolved, resolution.sampled);
    return report_stdout();
}

static int add_rows(add_state *state) {
    const add_options *options = state->options;
    int status = addition_check_output(state->index_path, state->base_path, options->ids, &options->words);
    if (status == EXIT_DONE)
        status = open_to_change((changing){state->index_path, SL_PLACE_DRAM, options->wait, options->progress},
                                &state->addition.index, &state->stats);
    if (status == EXIT_DONE) status = check_tags_and_keys(state);
    if (status == EXIT_DONE) status = load_rows(state);
    if (status == EXIT_DONE) status = reserve_rows(state);
    if (status == EXIT_DONE) status = addition_run(&state->addition, "adding");
    if (status == EXIT_DONE)
        status = keep_changes(state->addition.index, state->index_path, options->progress, &state->save_s);
    return status == EXIT_DONE ? print_result(state) : status;
}

static int run_add(const command *self, int argc, char **argv) {
    add_options options = {.wait = WAIT_DEFAULT};
    const char *paths[2];
    OPTIONS_PARSE(self, argc, argv, &options, paths);
    if (options.replace && options.replace_one) return report_usage("give --replace or --replace-one");
    if ((options.replace || options.replace_one) && !options.ids)
        return report_usage("--replace%s needs --ids FILE", options.replace ? "" : "-one");
    add_state state = {.options = &options, .index_path = paths[0], .base_path = paths[1]};
    state.addition.threads = options.threads;
    state.addition.replace = options.replace ? SL_REPLACE_ALL : options.replace_one ? SL_REPLACE_ONE : SL_REPLACE_NONE;
    state.addition.progress = options.progress;
    state.addition.refused = report_refused;
    state.addition.refused_ctx = &state;
    int status = add_rows(&state);
    sl_index_free(state.addition.index);
    addition_free(&state.addition);
    free(state.ids);
    return status;
}

static const char *const operands[] = {"INDEX", "BASE", NULL};

static const option add_table[] = {{0, "ids", OPTION_TEXT, "FILE", 0, offsetof(add_options, ids),
                                    "One id a vector: a .npy or .ibin file of one column of whole numbers. Without it "
                                    "ids go on from the largest one that there has been in INDEX."},
                                   {0, "replace", OPTION_FLAG, NULL, 0, offsetof(add_options, replace),
                                    "An id that is in INDEX gets its new vector in place of all its own. Needs --ids."},
                                   {0, "replace-one", OPTION_FLAG, NULL, 0, offsetof(add_options, replace_one),
                                    "An id that is in INDEX gets its new vector in place of its nearest one. Needs "
                                    "--ids."},
                                   OPTION_TAGS(add_options),
                                   OPTION_KEYS(add_options),
                                   OPTION_THREADS(add_options, "Threads to add with; 0 (default) takes all."),
                                   OPTION_WAIT(add_options),
                                   OPTION_PROGRESS(add_options),
                                   OPTION_JSON(add_options),
                                   OPTION_LAST};

const command command_add = {
    .name = "add",
    .summary = "add a file of vectors to an index",
    .synopsis =
        "shortlist add INDEX BASE [--ids FILE] [--replace | --replace-one] [--tags FILE] [--keys FILE] [--threads N] "
        "[--wait SECONDS] [--progress] [--json]",
    .description =
        "Adds the vectors of BASE to INDEX: all of them or none. BASE must have INDEX's dimension and type. An INDEX "
        "that was built with --room is changed in its file. Others who have it open find the new vectors from their "
        "next search on. Any other INDEX is read into memory, and the new whole takes its place. An id that is in the "
        "index is refused; in an INDEX that was built with --multi it gets one more vector. With --replace it gets its "
        "new vectors, tags and keys in place of all its own. With --replace-one each new vector takes the place of its "
        "id's nearest one, by L2, and the others stay. A deleted id may be given again. Without --tags and --keys an "
        "INDEX that has them gets zeros. Settings that 'shortlist tune' stored stay.\n"
        "BASE is a file of type " VECTORS_READ_ENDINGS
        ". From an .hdf5 file the dataset train is read, or the one named as FILE.hdf5:NAME. A BASE that is not read "
        "where it lies is unpacked first, as by 'shortlist build': above 256 MB into a temporary file beside INDEX.\n",
    .examples = "shortlist add base.sl more.fbin\n"
                "shortlist add base.sl more.npy --ids ids.npy --json\n"
                "shortlist add base.sl again.npy --ids ids.npy --replace\n",
    .operands = operands,
    .options = add_table,
    .run = run_add,
};
