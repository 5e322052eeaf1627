/* `build`: one index, built by all ranks. */
#include "base/cpu.h"
#include "cli/common/interrupt.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/index/description.h"
#include "cli/index/index_build.h"
#include "cli/index/open_save.h"
#include "cluster/commands/commands.h"
#include "cluster/commands/places.h"
#include "cluster/commands/ranks.h"
#include "cluster/commands/same_inputs.h"
#include "cluster/construct/shared_index.h"
#include "hnsw/construct/from_leaves.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---------------------------------------------------------------------------------------------------------------
 * What must be the same on all ranks
 * ------------------------------------------------------------------------------------------------------------- */

/* Names the instruction set if the index depends on it (docs/internals/build.md). */
static const char *named_tier(const sl_index_params *params) {
    const int is_finer = params->codes != SL_CODES_I8 && params->codes != SL_CODES_I4;
    return params->codes == SL_CODES_F32 || (params->metric == SL_METRIC_L2 && is_finer) ? sl_isa_name(sl_cpu_tier())
                                                                                         : "any";
}

/* Compares the ranks' bases, and what else their index depends on. */
static int check_same(const build_state *state) {
    const addition *addition = &state->addition;
    const sl_index_params params = build_params(state);
    const size_t n = addition->base->n;
    input_facts facts = {0};
    inputs_note(&facts, "instruction set", "%s", named_tier(&params));
    int status = inputs_note_vectors(&facts, "base", addition->base, addition->type);
    inputs_note_words(&facts, "checksum of the ids", addition->ids, n);
    inputs_note_words(&facts, "checksum of the tags", addition->tags, n);
    inputs_note_words(&facts, "checksum of the keys", addition->keys, n);
    return inputs_check_same(status, &facts);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The build
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct ranks_build {
    build_state state;
    sl_rank_share share;
    int is_shared;    /* 0: rank 0 builds alone */
    uint64_t *peaks;  /* bytes of memory that each rank has taken at most */
    uint64_t sent[2]; /* messages and bytes of all ranks */
} ranks_build;

/* Shows the progress. An interruption ends the work where the ranks agree on it, and not here. */
static int step(void *ctx, uint64_t done, uint64_t total) {
    (void)progress_step(ctx, done, total);
    return 0;
}

/* Names the rank's own work file. */
static int name_work(ranks_build *build) {
    build_state *state = &build->state;
    free(state->work);
    state->work = sl_rank_work_path(state->options->output, ranks()->rank);
    return state->work ? EXIT_DONE : report_failure("no memory for the path of the work file");
}

/* Creates the index with its notes. If a rank's file system has no locks, all ranks build without notes: they read and
 * write these together. Every rank calls it. Returns the agreed exit status. */
static int create_index(ranks_build *build) {
    build_state *state = &build->state;
    addition *addition = &state->addition;
    sl_status made = build_try_create(state);
    uint64_t is_unlocked = made == SL_EUNSUPPORTED && !state->options->max_memory;
    sl_status agreed = sl_comm_max(ranks(), &is_unlocked);
    if (agreed != SL_OK) return ranks_report(agreed);
    if (!is_unlocked) return ranks_agree(made == SL_OK ? EXIT_DONE : addition->refused(addition->refused_ctx, made));
    report_warning("%s: its file system has no locks on some rank, so the build keeps no notes. After a failure it "
                   "begins anew",
                   state->options->output);
    sl_index_free(addition->index);
    addition->index = NULL;
    if (!work_has_notes(state->work)) (void)unlink(state->work);
    free(state->work);
    state->work = NULL;
    return ranks_agree(build_create(state));
}

/* Decides who builds the index. */
static int begin_build(ranks_build *build) {
    build_state *state = &build->state;
    addition *addition = &state->addition;
    build->is_shared = sl_shared_index_can_add(addition->index, addition->builder, addition->base->n);
    if (!build->is_shared && addition->builder == SL_BUILDER_AUTO && addition->base->n >= SL_FROM_LEAVES_LEAST &&
        ranks()->rank == 0)
        report_warning("auto takes no leaves with this --m and --ef-build, so rank 0 inserts all vectors alone; give "
                       "--builder leaves to share the work");
    if (!build->is_shared) return EXIT_DONE;
    addition->builder = SL_BUILDER_LEAVES;
    addition->step = step;
    sl_rank_share_init(&build->share, ranks(), interrupted);
    sl_shared_index_begin(addition->index, &build->share,
                          ranks()->ranks > 1 && !state->options->room && !state->options->max_memory);
    if (!state->work) return EXIT_DONE;
    sl_status resumed = sl_shared_index_resume(addition->index, state->options->output, ranks());
    return resumed == SL_OK ? EXIT_DONE : report_status(NULL, resumed);
}

/* A call of the library that shares work has ended with this exit status. Reports the failure that the ranks agree
 * on. */
static int end_shared(ranks_build *build, int status) {
    sl_status mine = status == EXIT_DONE ? SL_OK : build->share.failed ? build->share.failed : SL_EIO;
    if (status != EXIT_DONE && !build->share.failed) mine = sl_fail(mine, "%s", ranks_message());
    mine = sl_rank_share_end(&build->share, mine);
    if (mine == SL_ECANCELED && build->state.work && work_has_notes(build->state.work))
        return report_failure("interrupted; no index was written, and the files %s.work.* let the same command go on",
                              build->state.options->output);
    return mine == SL_OK ? EXIT_DONE : report_status(NULL, mine);
}

static int add_and_save(ranks_build *build) {
    build_state *state = &build->state;
    if (!build->is_shared && ranks()->rank) return EXIT_DONE;
    int status = build_add(state);
    if (status == EXIT_DONE) status = build_save(state);
    return build->is_shared ? end_shared(build, status) : status;
}

/* Gathers the ranks' peaks of memory, and counts what all have sent. */
static int gather_counts(ranks_build *build) {
    const sl_comm_counts counts = sl_comm_counted(ranks());
    struct rusage usage;
    build->sent[0] = counts.messages;
    build->sent[1] = counts.bytes;
    build->peaks = calloc(ranks()->ranks, sizeof *build->peaks);
    int status =
        ranks_agree(build->peaks ? EXIT_DONE : report_failure("no memory for counts of %zu ranks", ranks()->ranks));
    if (status != EXIT_DONE) return status;
    (void)getrusage(RUSAGE_SELF, &usage);
    const uint64_t peak = (uint64_t)usage.ru_maxrss * 1024;
    sl_status sent = sl_comm_gather(ranks(), &peak, sizeof peak, build->peaks);
    if (sent == SL_OK) sent = sl_comm_sum_counts(ranks(), build->sent, 2);
    return sent == SL_OK ? EXIT_DONE : ranks_report(sent);
}

static void print_more(json *json, void *ctx) {
    const ranks_build *build = ctx;
    const sl_work_counts leaves = sl_shared_index_counts(build->state.addition.index);
    uint64_t most = 0;
    for (size_t r = 0; r < ranks()->ranks; r++)
        if (build->peaks[r] > most) most = build->peaks[r];
    if (!json) {
        printf("%zu ranks%s; %.1f MB sent in %llu messages; %.1f MB of memory per rank at most\n", ranks()->ranks,
               build->is_shared ? "" : ", of which rank 0 inserted all vectors alone", 1e-6 * (double)build->sent[1],
               (unsigned long long)build->sent[0], 1e-6 * (double)most);
        return;
    }
    json_count(json, "ranks", ranks()->ranks);
    json_count(json, "ranks_building", build->is_shared ? ranks()->ranks : 1);
    json_count(json, "leaves", leaves.pieces);
    json_count(json, "leaves_noted", leaves.noted);
    json_count(json, "messages", build->sent[0]);
    json_count(json, "bytes_sent", build->sent[1]);
    json_open_array(json, "peak_memory");
    for (size_t r = 0; r < ranks()->ranks; r++)
        json_count(json, NULL, build->peaks[r]);
    json_close_array(json);
}

static int build_on_ranks(ranks_build *build) {
    build_state *state = &build->state;
    int status = build_check(state);
    if (status == EXIT_DONE && ranks()->rank == 0) status = output_try(state->options->output, 0);
    status = ranks_agree(status);
    if (status == EXIT_DONE) status = ranks_agree(build_open(state));
    if (status == EXIT_DONE) status = check_same(state);
    if (status == EXIT_DONE) status = ranks_agree(name_work(build));
    if (status == EXIT_DONE) status = create_index(build);
    if (status == EXIT_DONE) status = ranks_agree(begin_build(build));
    if (status == EXIT_DONE) status = ranks_agree(build_reserve(state));
    if (status == EXIT_DONE) status = ranks_agree(add_and_save(build));
    if (status == EXIT_DONE) status = gather_counts(build);
    return status == EXIT_DONE && ranks()->rank == 0 ? build_print(state, print_more, build) : status;
}

static int run_build(const command *self, int argc, char **argv) {
    build_options options = build_defaults();
    ranks_build build = {.is_shared = 0};
    const char *base;
    OPTIONS_PARSE(self, argc, argv, &options, &base);
    options.progress = options.progress && ranks()->rank == 0;
    sl_status placed = places_threads(options.threads, &options.threads);
    if (placed != SL_OK) return ranks_report(placed);
    build_begin(&build.state, &options, base);
    int status = build_on_ranks(&build);
    build_end(&build.state);
    free(build.peaks);
    return status;
}

static const char *const operands[] = {"BASE", NULL};

static const option build_table[] = {
    BUILD_OPTIONS,
    OPTION_THREADS(build_options,
                   "Threads of each rank; 0 (default) takes as many as OMP_NUM_THREADS or the rank's CPUs give."),
    {0, "max-memory", OPTION_BYTES, "BYTES", 0, offsetof(build_options, max_memory),
     "Memory that each rank takes at most; 512M, 16G. Large blocks beyond that lie in temporary files beside INDEX. "
     "INDEX is the same as without this option."},
    OPTION_PROGRESS(build_options),
    OPTION_JSON(build_options),
    OPTION_LAST};

const command command_cluster_build = {
    .name = "build",
    .summary = "build one index by all ranks",
    .synopsis =
        "mpirun -np N shortlist-mpi build BASE -o INDEX --metric ip|cosine|l2 [--codes i8|i16|f32|i4] [--refine "
        "none|f32|bf16|i16] [--clip auto|minmax|mse|quantile[:SHARE]] [--m N] [--ef-build N] [--builder "
        "auto|insert|leaves] [--threads N] [--ids FILE] [--multi] [--tags FILE] [--keys FILE] [--seed N] [--room N] "
        "[--layout arrays|records] [--max-memory BYTES] [--progress] [--json]",
    .description =
        "Builds the index that 'shortlist build' builds of the same BASE and options, byte for byte, at any number of "
        "ranks. All ranks see BASE and the folder of INDEX. Each rank checks and encodes a part of the vectors, "
        "compares "
        "a part of the leaves, selects the links of a part of the vectors, and writes a part of INDEX. INDEX appears "
        "whole or not at all.\nVectors that are inserted, not linked by leaves, are all inserted by rank 0: see "
        "--builder. With --room rank 0 writes INDEX alone.\nINDEX.work.R notes what the leaves of rank R have found. "
        "The "
        "same command, given again after a failed run, goes on from all such files, also at another number of ranks. A "
        "run that ends well removes them.\n",
    .examples = "mpirun -np 4 --hostfile hosts shortlist-mpi build base.fbin -o base.sl --metric cosine\n",
    .operands = operands,
    .options = build_table,
    .run = run_build,
};
