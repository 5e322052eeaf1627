#include "cli/common/output.h"
#include "cli/common/report.h"
#include "cli/index/commands.h"
#include "cli/index/dry_run.h"
#include "cli/index/index_build.h"

static int print_needs(const build_state *state) {
    const build_options *options = state->options;
    const sl_index_params params = build_params(state);
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

static int build_index(build_state *state) {
    const build_options *options = state->options;
    int status = build_check(state);
    if (status == EXIT_DONE && !options->dry_run) status = output_try(options->output, 0);
    if (status == EXIT_DONE) status = build_open(state);
    if (status != EXIT_DONE || options->dry_run) return status == EXIT_DONE ? print_needs(state) : status;
    status = build_create(state);
    if (status == EXIT_DONE) status = build_reserve(state);
    if (status == EXIT_DONE) status = build_add(state);
    if (status == EXIT_DONE) status = build_save(state);
    return status == EXIT_DONE ? build_print(state, NULL, NULL) : status;
}

static int run_build(const command *self, int argc, char **argv) {
    build_options options = build_defaults();
    build_state state;
    const char *base;
    OPTIONS_PARSE(self, argc, argv, &options, &base);
    build_begin(&state, &options, base);
    int status = build_index(&state);
    build_end(&state);
    return status;
}

static const char *const operands[] = {"BASE", NULL};

static const option build_table[] = {
    BUILD_OPTIONS,
    OPTION_THREADS(build_options,
                   "Threads to build with; 0 (default) takes as many as OMP_NUM_THREADS or the machine gives."),
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
