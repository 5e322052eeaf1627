#include "cli/common/hash.h"
#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/index/add_vectors.h"
#include "cli/index/commands.h"
#include "cli/index/description.h"
#include "cli/index/dry_run.h"
#include "cli/index/open_save.h"
#include "cli/index/sampled_check.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct build_options {
    const char *output, *ids;
    word_files words;
    int metric, codes, refine, place, layout, builder; /* codes -1: by the input's type */
    numa_choice numa;
    clip_choice clip;
    size_t m, ef_build, threads, seed, max_memory, room;
    int multi, progress, json, dry_run;
} build_options;

typedef struct build_state {
    const build_options *options;
    const char *base_path;
    addition addition;
    uint64_t *ids;
    size_t memory; /* the index's part of --max-memory; 0: no limit */
    char *work;    /* path of the work file */
    double save_s;
} build_state;

static int report_build(void *ctx, sl_status status) {
    const build_state *state = ctx;
    return report_bounded(state->base_path, state->options->output, state->options->max_memory, status);
}

/* The index's parameters, without a limit of memory. */
static sl_index_params index_params(const build_state *state) {
    const build_options *options = state->options;
    sl_index_params params;
    sl_index_params_init(&params);
    params.dim = state->addition.base->dim;
    params.metric = (sl_metric)options->metric;
    params.dtype = element_dtype(state->addition.base->type);
    params.codes = index_codes(options->codes, params.dtype);
    params.refine = (sl_refine)options->refine;
    params.clip = options->clip.clip;
    params.clip_share = options->clip.share;
    params.m = options->m;
    params.ef_construction = options->ef_build;
    params.seed = options->seed;
    params.tags = options->words.tags != NULL;
    params.keys = options->words.keys != NULL;
    params.multi = options->multi;
    params.numa = options->numa.policy;
    params.numa_node = options->numa.node;
    params.log = report_log(&params.log_ctx);
    return params;
}

static int prepare_index(build_state *state) {
    sl_index_params params = index_params(state);
    params.max_memory = state->memory;
    params.work_path = state->work;
    sl_status status = sl_index_create(&params, &state->addition.index);
    if (status == SL_OK) status = sl_index_reserve(state->addition.index, state->addition.base->n);
    return status == SL_OK ? EXIT_DONE : report_build(state, status);
}

/* Checks the parameters on an index of one element, so that faults of the options are reported before faults of the
 * base. */
static int check_settings(const build_options *options) {
    sl_index_params params;
    sl_index *index;
    sl_index_params_init(&params);
    params.dim = 1;
    params.m = options->m;
    params.ef_construction = options->ef_build;
    params.numa = options->numa.policy;
    params.numa_node = options->numa.node;
    sl_status status = sl_index_create(&params, &index);
    if (status != SL_OK) return report_status(NULL, status);
    sl_index_free(index);
    return EXIT_DONE;
}

/* The command's own ids, words and rows count towards --max-memory. */
static int prepare_rows(build_state *state) {
    const build_options *options = state->options;
    const size_t limit = options->max_memory;
    int status = addition_prepare(&state->addition, options->output, limit / 8);
    if (!limit || status != EXIT_DONE) return status;
    const size_t own = addition_bytes(&state->addition);
    state->memory = limit > own ? limit - own : 1;
    return work_path(limit, options->output, &state->work);
}

static int print_needs(const build_state *state) {
    const build_options *options = state->options;
    const sl_index_params params = index_params(state);
    const dry_run dry = {.params = &params,
                         .addition = &state->addition,
                         .base_path = state->base_path,
                         .output = options->output,
                         .room = options->room,
                         .max_memory = options->max_memory,
                         .layout = (sl_layout)options->layout,
                         .json = options->json};
    return dry_run_print(&dry);
}

/* Reads the index's facts. An index in records has arrays in memory, so its bytes come from its file. */
static int get_file_stats(const build_state *state, sl_index_stats *stats) {
    const char *path = state->options->output;
    *stats = (sl_index_stats){.struct_size = sizeof *stats};
    if (state->options->layout == SL_LAYOUT_RECORDS && !state->options->room) {
        sl_index *saved;
        int status = open_index(path, (opening){.place = SL_PLACE_MAP, .tier = SL_TIER_NONE}, &saved, stats);
        if (status == EXIT_DONE) sl_index_free(saved);
        return status;
    }
    sl_status status = sl_index_get_stats(state->addition.index, stats);
    return status == SL_OK ? EXIT_DONE : report_status(path, status);
}

static int print_result(const build_state *state) {
    sl_index_stats stats;
    sl_resolution resolution;
    file_hash hash;
    int status = get_file_stats(state, &stats);
    if (status == EXIT_DONE)
        status =
            measure_resolution(state->options->output, state->addition.index, state->options->threads, &resolution);
    if (status == EXIT_DONE) status = hash_file(state->options->output, state->options->room, &hash);
    if (status != EXIT_DONE) return status;
    size_t threads = thread_count(state->options->threads);
    double rate = state->addition.add_s > 0 ? (double)stats.n / state->addition.add_s : 0;
    if (state->options->json) {
        json json;
        json_begin(&json, stdout);
        json_index(&json, &stats);
        json_real(&json, "build_s", state->addition.add_s);
        json_real(&json, "read_s", state->addition.read_s);
        json_real(&json, "link_s", state->addition.link_s);
        json_real(&json, "number_s", state->addition.number_s);
        json_real(&json, "save_s", state->save_s);
        json_real(&json, "rows_per_s", rate);
        json_count(&json, "threads", threads);
        json_real(&json, "quant_error_mean", stats.quant_error_mean);
        json_real(&json, "quant_error_max", stats.quant_error_max);
        json_resolution(&json, resolution.unresolved, resolution.sampled);
        json_text(&json, "output", state->options->output);
        json_text(&json, "hash", hash_digits(&hash));
        json_end(&json);
    } else {
        printf("%s: ", state->options->output);
        print_index(&stats);
        printf("built in %.1f s, %.0f vectors/s on %zu threads; quantisation error %.3g mean, %.3g largest\n",
               state->addition.add_s, rate, threads, stats.quant_error_mean, stats.quant_error_max);
        print_hash(&hash);
    }
    (void)warn_of_resolution(state->options->output, &stats, resolution.unresolved, resolution.sampled);
    return report_stdout();
}

/* This check comes before the work. */
static int check_room(const build_state *state) {
    size_t room = state->options->room, n = state->addition.base->n;
    if (!room || room >= n) return EXIT_DONE;
    return report_failure("--room %zu: %s has %zu vectors; give as many or more", room, state->base_path, n);
}

static int build_index(build_state *state) {
    const build_options *options = state->options;
    if (options->place != SL_PLACE_DRAM)
        return report_failure("--place %s: this version builds in DRAM only; build with --place dram, and open the "
                              "index with --place map",
                              sl_place_name((sl_place)options->place));
    addition *addition = &state->addition;
    int status = check_settings(options);
    if (status == EXIT_DONE)
        status = addition_check_output(options->output, state->base_path, options->ids, &options->words);
    if (status == EXIT_DONE && !options->dry_run) status = output_try(options->output, 0);
    if (status == EXIT_DONE) status = vectors_open(state->base_path, VECTORS_BASE, &addition->base);
    if (status == EXIT_DONE) status = vectors_check_metric(addition->base, (sl_metric)options->metric);
    if (status != EXIT_DONE) return status;
    addition->type = element_of_dtype(element_dtype(addition->base->type));
    size_t n = addition->base->n;
    if (options->ids) status = vectors_read_ids(options->ids, state->base_path, &n, &state->ids);
    addition->ids = state->ids;
    if (status == EXIT_DONE) status = addition_read_words(addition, state->base_path, &options->words);
    if (status == EXIT_DONE) status = check_room(state);
    if (status == EXIT_DONE) status = prepare_rows(state);
    if (status != EXIT_DONE || options->dry_run) return status == EXIT_DONE ? print_needs(state) : status;
    status = prepare_index(state);
    if (status == EXIT_DONE) status = addition_run(addition, "building");
    if (status == EXIT_DONE)
        status = save_index((saving){state->addition.index, options->room, (sl_layout)options->layout}, options->output,
                            options->progress, &state->save_s);
    return status == EXIT_DONE ? print_result(state) : status;
}

static int run_build(const command *self, int argc, char **argv) {
    sl_index_params defaults;
    sl_index_params_init(&defaults);
    build_options options = {.codes = -1,
                             .refine = (int)defaults.refine,
                             .clip = {.clip = defaults.clip, .share = defaults.clip_share},
                             .m = defaults.m,
                             .ef_build = defaults.ef_construction,
                             .seed = (size_t)defaults.seed};
    const char *base;
    OPTIONS_PARSE(self, argc, argv, &options, &base);
    build_state state = {.options = &options, .base_path = base};
    state.addition.threads = options.threads;
    state.addition.builder = (sl_builder)options.builder;
    state.addition.progress = options.progress;
    state.addition.refused = report_build;
    state.addition.refused_ctx = &state;
    int status = build_index(&state);
    sl_index_free(state.addition.index);
    addition_free(&state.addition);
    free(state.work);
    free(state.ids);
    return status;
}

static const char *const operands[] = {"BASE", NULL};

static const option build_table[] = {
    {'o', "output", OPTION_TEXT, "INDEX", 1, offsetof(build_options, output),
     "The index file. The file appears whole or not at all; a file of that name stays as it is until then."},
    {0, "metric", OPTION_WORD, "ip|cosine|l2", 1, offsetof(build_options, metric),
     "Inner product (larger is nearer), cosine of the angle (larger is nearer), or squared Euclidean distance (smaller "
     "is nearer)."},
    {0, "codes", OPTION_WORD, "i8|i16|f32|i4", 0, offsetof(build_options, codes),
     "Codes that the graph is walked over. Floating-point vectors are quantised to i8 (default) or i16 with one scale "
     "a vector, or kept as f32. i4 keeps 4 bits an element for the walk and 8 more beside them for ranking, about 12 "
     "in all. Integer vectors are their own codes, kept exactly: .u8bin and .i8bin take i8, 16-bit integers i16. For "
     "integers, and for floating-point vectors longer than some 112, i4 is i8 or i16 with shorter 4-bit rows beside "
     "them for the walk."},
    {0, "refine", OPTION_WORD, "none|f32|bf16|i16", 0, offsetof(build_options, refine),
     "A finer copy of floating-point vectors that re-ranks the best the graph found (default none). The copy costs 4, "
     "2 or 2 bytes an element. bf16 is not for vectors that codes i4 keep in 12 bits."},
    {0, "clip", OPTION_CLIP, "auto|minmax|mse|quantile[:SHARE]", 0, offsetof(build_options, clip),
     "Range that a vector's codes cover. minmax: up to its largest magnitude. mse: the one of ten with the least "
     "squared error. quantile: all but a SHARE of its elements (default 0.01). auto (default): minmax for i8 and i16, "
     "mse for the 4 bits of i4. 'shortlist eval' shows the effect on recall."},
    {0, "m", OPTION_COUNT, "N", 0, offsetof(build_options, m),
     "Links a node, 2 to 256 (default 16); twice that on the lowest layer. More give better recall for more bytes."},
    {0, "ef-build", OPTION_COUNT, "N", 0, offsetof(build_options, ef_build),
     "Work for a vector's links (default 200). More give a better graph for a slower build. An inserted vector keeps N "
     "candidates. With leaves, a vector is in N / 50 leaves of each of two partitionings."},
    {0, "builder", OPTION_WORD, "auto|insert|leaves", 0, offsetof(build_options, builder),
     "How vectors get their links. insert: each searches the graph for its neighbours. leaves: overlapping sets of "
     "near vectors compare all their pairs; for 4,096 vectors or more. Leaves give the same INDEX on any number of "
     "threads and, but for codes f32, on any processor; insert on several gives another each time. auto (default): "
     "leaves "
     "where that serves, with --m from 16 to 24 and --ef-build 200 or more."},
    OPTION_THREADS(build_options, "Threads to build with; 0 (default) takes as many as OMP_NUM_THREADS or the machine "
                                  "gives."),
    {0, "ids", OPTION_TEXT, "FILE", 0, offsetof(build_options, ids),
     "One id a vector: a .npy or .ibin file of one column of whole numbers. Without it vectors are numbered from 0 in "
     "their order."},
    {0, "multi", OPTION_FLAG, NULL, 0, offsetof(build_options, multi),
     "An id may have several vectors: an id that comes again in --ids, or in a later 'shortlist add', gets one more. "
     "A search then finds different ids, each by its best vector that it meets."},
    OPTION_TAGS(build_options),
    OPTION_KEYS(build_options),
    {0, "seed", OPTION_COUNT, "N", 0, offsetof(build_options, seed), "Seed of the nodes' levels (default 1)."},
    {0, "room", OPTION_COUNT, "N", 0, offsetof(build_options, room),
     "Make a file with room for N vectors in all. 'shortlist add' and 'shortlist delete' change the file in place, "
     "beside others who have it open. Unused room takes no space where the file system knows holes."},
    {0, "layout", OPTION_WORD, "arrays|records", 0, offsetof(build_options, layout),
     "Place of codes, links and ids in the file. arrays (default): each in an array of its own, the best in memory and "
     "mostly the smallest. records: those of a vector side by side in a record of a multiple of 256 bytes. Records "
     "suit persistent memory and other media that are slower and read in blocks."},
    {0, "max-memory", OPTION_BYTES, "BYTES", 0, offsetof(build_options, max_memory),
     "Memory that the build takes at most; 512M, 16G. Large blocks beyond that lie in temporary files beside INDEX. "
     "The system caches these files while memory is free. INDEX.work notes what leaves have found. The same command, "
     "given again after an interruption or a refusal, goes on from there, and then removes the file. Nothing else "
     "removes a file with notes. INDEX is the same as without this option; with leaves, byte for byte."},
    {0, "place", OPTION_WORD, "dram|map|pmem", 0, offsetof(build_options, place),
     "Memory that holds the index while it is built; this version builds in dram (default)."},
    OPTION_PLACE_NODES(build_options),
    {0, "dry-run", OPTION_FLAG, NULL, 0, offsetof(build_options, dry_run),
     "Build nothing: print the time, memory and disk that the build will take on this machine. Two samples of BASE are "
     "built, each twice. One has 4,096 vectors, the other as many as take about a second. Their files are removed. "
     "Linking by leaves and numbering grow as a * n + b * c, with c comparisons of vectors with centres, which grow "
     "faster than n; inserting grows as a * n + b * n * log n. Memory and disk are counted. The size of INDEX.work is "
     "estimated from the samples. A BASE that is not in the page cache takes longer."},
    OPTION_PROGRESS(build_options),
    OPTION_JSON(build_options),
    OPTION_LAST};

const command command_build = {
    .name = "build",
    .summary = "build an index from a file of vectors",
    .synopsis = "shortlist build BASE -o INDEX --metric ip|cosine|l2 [--codes i8|i16|f32|i4] [--refine "
                "none|f32|bf16|i16] [--clip auto|minmax|mse|quantile[:SHARE]] [--m N] [--ef-build N] [--builder "
                "auto|insert|leaves] [--threads N] "
                "[--ids FILE] [--multi] [--tags FILE] [--keys FILE] [--seed N] [--room N] [--layout "
                "arrays|records] "
                "[--max-memory BYTES] "
                "[--place dram] [--numa interleave|bind:N|local] [--dry-run] [--progress] [--json]",
    .description =
        "Reads the vectors of BASE, links them into an HNSW graph over their codes, and writes the graph, "
        "the codes and the ids to INDEX. BASE is a file of type " VECTORS_READ_ENDINGS
        "; the ending of its name gives the type. From an .hdf5 file the dataset train is read, or the one named as "
        "FILE.hdf5:NAME. A BASE of .fbin, .u8bin or .i8bin is read where it lies, and so is .npy of these types in C "
        "order. Any other BASE is unpacked first. Up to 256 MB, and an eighth of --max-memory, it goes into memory; "
        "else into a temporary file beside INDEX.\nVectors of float32 and float16 are quantised. float64 is taken as "
        "float32; wider integers are taken as float32 where that is exact. Vectors of u8, i8 and i16 are kept "
        "exactly.\nVectors with NaN or infinity, vectors of length zero under cosine, and without --multi ids that "
        "come twice are refused. The message names the row, counted from 0. Ctrl-C ends the build and leaves nothing "
        "behind, except with --max-memory the notes to go on from.\nPrints the hash of the file, XXH3 of 128 bits: "
        "equal files have equal hashes, and 'xxh128sum INDEX' prints the same. A file with room has no hash: it is "
        "never equal to another.\n",
    .examples = "shortlist build base.fbin -o base.sl --metric cosine\n"
                "shortlist build base.npy -o base.sl --metric l2 --refine bf16 --m 32 --json\n"
                "shortlist build base.fbin -o base.sl --metric cosine --dry-run\n"
                "shortlist build glove.hdf5 -o glove.sl --metric cosine --ids ids.npy\n",
    .operands = operands,
    .options = build_table,
    .run = run_build,
};
