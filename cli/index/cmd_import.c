#include "cli/common/clock.h"
#include "cli/common/hash.h"
#include "cli/common/json_out.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/index/commands.h"
#include "cli/index/description.h"
#include "cli/index/open_save.h"

#include <shortlist_import.h>
#include <stdio.h>
#include <string.h>

typedef struct import_options {
    const char *output;
    int metric, codes, refine, layout; /* metric, codes -1: by the file */
    clip_choice clip;
    size_t dim, threads, room;
    int progress, json;
} import_options;

typedef struct import_state {
    const import_options *options;
    const char *operands[2]; /* the format and the file */
    sl_foreign_format format;
    sl_index *index;
    sl_index_stats stats;
    double import_s, save_s;
} import_state;

static int read_format(import_state *state) {
    static const char *const names[] = {[SL_FOREIGN_HNSWLIB] = "hnswlib", [SL_FOREIGN_FAISS] = "faiss"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(state->operands[0], names[i]) != 0) continue;
        state->format = (sl_foreign_format)i;
        return EXIT_DONE;
    }
    return report_usage("'%s' is no format that can be imported; give hnswlib or faiss", state->operands[0]);
}

static sl_index_params index_params(const import_options *options) {
    sl_index_params params;
    sl_index_params_init(&params);
    params.dim = options->dim;
    params.codes = index_codes(options->codes, SL_F32);
    params.clip = options->clip.clip;
    params.clip_share = options->clip.share;
    params.log = report_log(&params.log_ctx);
    return params;
}

static int import_index(import_state *state) {
    const import_options *options = state->options;
    const sl_index_params index = index_params(options);
    progress progress;
    sl_import_params params;
    sl_import_params_init(&params);
    params.format = state->format;
    params.metric = options->metric;
    params.refine = options->refine + SL_REFINE_AUTO; /* the first word is auto */
    params.index = &index;
    params.threads = options->threads;
    params.progress = progress_step;
    params.progress_ctx = &progress;
    const double start = now_seconds();
    progress_begin(&progress, "importing", "vectors", 0, options->progress);
    sl_status status = sl_index_import(state->operands[1], &params, &state->index);
    progress_end(&progress, status == SL_OK);
    state->import_s = now_seconds() - start;
    state->stats = (sl_index_stats){.struct_size = sizeof state->stats};
    if (status == SL_OK) status = sl_index_get_stats(state->index, &state->stats);
    return status == SL_OK ? EXIT_DONE : report_status(NULL, status);
}

static int print_result(const import_state *state) {
    const import_options *options = state->options;
    file_hash hash;
    if (hash_file(options->output, options->room, &hash) != EXIT_DONE) return EXIT_FAILED;
    if (options->json) {
        json json;
        json_begin(&json, stdout);
        json_index(&json, &state->stats);
        json_text(&json, "from", state->operands[1]);
        json_real(&json, "import_s", state->import_s);
        json_real(&json, "save_s", state->save_s);
        json_count(&json, "threads", thread_count(options->threads));
        json_text(&json, "output", options->output);
        json_text(&json, "hash", hash_digits(&hash));
        json_end(&json);
    } else {
        printf("%s: ", options->output);
        print_index(&state->stats);
        printf("imported from %s in %.1f s on %zu threads\n", state->operands[1], state->import_s,
               thread_count(options->threads));
        print_hash(&hash);
    }
    return report_stdout();
}

static int import_and_save(import_state *state) {
    const import_options *options = state->options;
    const char *const inputs[] = {state->operands[1], NULL};
    int status = read_format(state);
    if (status == EXIT_DONE) status = output_check(options->output, inputs);
    if (status == EXIT_DONE) status = import_index(state);
    if (status == EXIT_DONE)
        status = save_index((saving){state->index, options->room, (sl_layout)options->layout}, options->output,
                            options->progress, &state->save_s);
    return status == EXIT_DONE ? print_result(state) : status;
}

static int run_import(const command *self, int argc, char **argv) {
    sl_index_params defaults;
    sl_index_params_init(&defaults);
    import_options options = {
        .metric = SL_METRIC_OF_FILE, .codes = -1, .clip = {.clip = defaults.clip, .share = defaults.clip_share}};
    import_state state = {.options = &options};
    OPTIONS_PARSE(self, argc, argv, &options, state.operands);
    int status = import_and_save(&state);
    sl_index_free(state.index);
    return status;
}

static const char *const operands[] = {"FORMAT", "FILE", NULL};

static const option import_table[] = {
    {'o', "output", OPTION_TEXT, "INDEX", 1, offsetof(import_options, output),
     "The index file. The file appears whole or not at all."},
    {0, "metric", OPTION_WORD, "ip|cosine|l2", 0, offsetof(import_options, metric),
     "The metric that FILE was built with. A file of hnswlib does not tell it, so it is required there. For a file of "
     "Faiss the default is the file's; cosine may be given for inner products of vectors of length 1."},
    {0, "dim", OPTION_COUNT, "D", 0, offsetof(import_options, dim),
     "The dimension that FILE must have; 0 (default): any. It also tells bytes from float32 in a file of hnswlib."},
    {0, "codes", OPTION_WORD, "i8|i16|f32|i4", 0, offsetof(import_options, codes),
     "Codes that the graph is walked over, as of 'shortlist build'."},
    {0, "refine", OPTION_WORD, "auto|none|f32|bf16|i16", 0, offsetof(import_options, refine),
     "A finer copy of each vector that ranks the results, as of 'shortlist build'. auto (default): bf16 for floats in "
     "codes i8, so that INDEX finds as much as FILE; else none."},
    {0, "clip", OPTION_CLIP, "auto|minmax|mse|quantile[:SHARE]", 0, offsetof(import_options, clip),
     "The range that codes cover, as of 'shortlist build'."},
    {0, "room", OPTION_COUNT, "N", 0, offsetof(import_options, room),
     "Make a file with room for N vectors in all, as of 'shortlist build'."},
    {0, "layout", OPTION_WORD, "arrays|records", 0, offsetof(import_options, layout),
     "Place of codes, links and ids in the file, as of 'shortlist build'."},
    OPTION_THREADS(import_options, "Threads to import with; 0 (default) takes all."),
    OPTION_PROGRESS(import_options),
    OPTION_JSON(import_options),
    OPTION_LAST};

const command command_import = {
    .name = "import",
    .summary = "make an index of another library's file",
    .synopsis = "shortlist import hnswlib|faiss FILE -o INDEX [--metric ip|cosine|l2] [--dim D] [--codes "
                "i8|i16|f32|i4] [--refine auto|none|f32|bf16|i16] [--clip auto|minmax|mse|quantile[:SHARE]] [--room N] "
                "[--layout arrays|records] [--threads N] [--progress] [--json]",
    .description =
        "Makes INDEX of a FILE that another library saved. The graph is taken over as it is, with levels, links, "
        "labels and deleted marks; the vectors get codes of our own. So nothing is linked anew, and INDEX finds what "
        "FILE finds at the same --ef.\n"
        "hnswlib: files of save_index, of float32 vectors, or of bytes under l2.\n"
        "faiss: files of write_index that hold an IndexHNSWFlat, IndexHNSWSQ, IndexFlat or IndexScalarQuantizer, also "
        "inside an IndexIDMap. A file without a graph is linked as 'shortlist build' does.\n"
        "FILE is checked before anything is made of it. A file that is damaged, or holds something else, is refused "
        "with a line that says what was found.\n",
    .examples = "shortlist import hnswlib items.bin -o items.sl --metric cosine --dim 100\n"
                "shortlist import faiss items.faiss -o items.sl --refine none --json\n",
    .operands = operands,
    .options = import_table,
    .run = run_import,
};
