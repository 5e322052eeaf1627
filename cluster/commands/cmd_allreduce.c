/* `allreduce`: measures and verifies sums over the ranks. */
#include "cli/common/json_out.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cluster/allreduce/tuning.h"
#include "cluster/commands/commands.h"
#include "cluster/commands/ranks.h"
#include "cluster/commands/reduce_race.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct allreduce_options {
    int algorithm; /* 0: all; else one more than the algorithm */
    const char *shape, *tuning;
    size_t count, rounds, chunk, machine_ranks;
    int type, lane, sync, put_reduces, shared, verify, json;
} allreduce_options;

typedef struct state {
    allreduce_options options;
    sl_tuning tuning;
    racer racers[SL_ALLREDUCE_COUNT];
    size_t racer_count;
    float *numbers;
} state;

/* Parses "4x8". */
static int parse_shape(const char *text, sl_allreduce_params *params) {
    unsigned long rows, columns;
    int used = 0;
    if (!text) return EXIT_DONE;
    if (!strchr(text, '-') && sscanf(text, "%6lux%6lu%n", &rows, &columns, &used) == 2 && text[used] == '\0' && rows &&
        columns) {
        params->rows = rows;
        params->columns = columns;
        return EXIT_DONE;
    }
    return report_usage("--shape is '%s'; give rows and columns, like 4x8", text);
}

static int choose_racers(state *state, void *log_ctx, sl_log_fn log) {
    const allreduce_options *options = &state->options;
    sl_allreduce_params params = {.wire = (sl_wire)options->type,
                                  .lane = (sl_lane)options->lane,
                                  .sync = (sl_window_sync)options->sync,
                                  .put_reduces = options->put_reduces,
                                  .shared = options->shared,
                                  .machine_ranks = options->machine_ranks,
                                  .chunk = options->chunk,
                                  .log = log,
                                  .log_ctx = log_ctx};
    const int first = options->algorithm ? options->algorithm - 1 : SL_ALLREDUCE_MPI;
    const int end = options->algorithm ? options->algorithm : SL_ALLREDUCE_COUNT;
    for (int a = first; a < end; a++) {
        racer *racer = &state->racers[state->racer_count++];
        racer->params = params;
        racer->params.algorithm = (sl_allreduce_algorithm)a;
        if (a == SL_ALLREDUCE_AUTO && options->tuning) racer->params.tuning = &state->tuning;
        /* With all algorithms, the shape is for those that have one. */
        const int has_shape = a == SL_ALLREDUCE_TORUS || a == SL_ALLREDUCE_TORUS_PUT || options->algorithm;
        if (!has_shape) continue;
        int status = parse_shape(options->shape, &racer->params);
        if (status != EXIT_DONE) return status;
    }
    return EXIT_DONE;
}

static sl_status race(state *state) {
    const size_t count = state->options.count;
    SL_TRY(race_prepare(state->racers, state->racer_count, count));
    for (size_t i = 0; i < state->racer_count && state->options.verify; i++)
        SL_TRY(race_verify(&state->racers[i], state->numbers, count));
    /* The first round touches the buffers, and does not count. */
    SL_TRY(race_round(state->racers, state->racer_count, state->numbers, count));
    for (size_t i = 0; i < state->racer_count; i++)
        state->racers[i].rounds = 0;
    for (size_t round = 0; round < state->options.rounds; round++)
        SL_TRY(race_round(state->racers, state->racer_count, state->numbers, count));
    race_rank(state->racers, state->racer_count);
    return SL_OK;
}

/* ---- Output ---- */

/* "4x8", or "-" for an algorithm without shape. */
static const char *shape_of(const sl_allreduce_params *params, char *text, size_t size) {
    if (!params->rows) return "-";
    snprintf(text, size, "%zux%zu", params->rows, params->columns);
    return text;
}

static void print_text(const state *state) {
    char shape[32];
    printf("%zu ranks, %zu numbers, %s on the wire, %zu rounds; messages and bytes that rank 0 sends\n", ranks()->ranks,
           state->options.count, state->options.type ? "bf16" : "f32", state->options.rounds);
    printf("%-13s %7s %6s %10s %10s %10s %8s %12s %6s %10s %10s\n", "algorithm", "shape", "shared", "median_ms",
           "least_ms", "most_ms", "messages", "bytes", "steps", "error", "bound");
    for (size_t i = 0; i < state->racer_count; i++) {
        const racer *racer = &state->racers[i];
        printf("%-13s %7s %6s %10.4g %10.4g %10.4g %8llu %12llu %6zu ", sl_allreduce_name(racer->used.algorithm),
               shape_of(&racer->used, shape, sizeof shape), racer->used.shared ? "yes" : "no", 1e3 * racer->median,
               1e3 * racer->least, 1e3 * racer->most, (unsigned long long)racer->cost.messages,
               (unsigned long long)racer->cost.bytes, racer->cost.steps);
        if (state->options.verify)
            printf("%10.3g %10.3g\n", racer->error, racer->bound);
        else
            printf("%10s %10.3g\n", "-", racer->bound);
    }
}

static void print_racer(json *json, const racer *racer, int verified) {
    json_open_object(json, NULL);
    json_text(json, "asked", sl_allreduce_name(racer->params.algorithm));
    json_text(json, "algorithm", sl_allreduce_name(racer->used.algorithm));
    json_count(json, "rows", racer->used.rows);
    json_count(json, "columns", racer->used.columns);
    json_flag(json, "shared", racer->used.shared);
    json_real(json, "median_s", racer->median);
    json_real(json, "least_s", racer->least);
    json_real(json, "most_s", racer->most);
    json_count(json, "formula_messages", racer->cost.messages);
    json_count(json, "formula_bytes", racer->cost.bytes);
    json_count(json, "steps", racer->cost.steps);
    json_real(json, "bound", racer->bound);
    if (verified) {
        json_count(json, "messages", racer->sent.messages);
        json_count(json, "bytes", racer->sent.bytes);
        json_real(json, "error", racer->error);
    }
    json_close_object(json);
}

static void print_json(const state *state) {
    json json;
    json_begin(&json, stdout);
    json_count(&json, "ranks", ranks()->ranks);
    json_count(&json, "count", state->options.count);
    json_text(&json, "type", state->options.type ? "bf16" : "f32");
    json_count(&json, "rounds", state->options.rounds);
    json_open_array(&json, "algorithms");
    for (size_t i = 0; i < state->racer_count; i++)
        print_racer(&json, &state->racers[i], state->options.verify);
    json_close_array(&json);
    json_end(&json);
}

/* Fails if a sum was wrong. All ranks know the same. */
static int check_racers(const state *state) {
    for (size_t i = 0; i < state->racer_count && state->options.verify; i++) {
        const racer *racer = &state->racers[i];
        const char *name = sl_allreduce_name(racer->used.algorithm);
        if (racer->is_wrong)
            return report_failure("algorithm %s: a sum is wrong by more than its bound %.3g; do not use it here", name,
                                  racer->bound);
        if (racer->differs)
            return report_failure("algorithm %s: the ranks have different sums; do not use it here", name);
        if (racer->sends_other)
            return report_failure("algorithm %s: a rank sent other messages or bytes than the formula says", name);
    }
    return EXIT_DONE;
}

/* ---- The command ---- */

static int run_race(state *state) {
    sl_status status = race(state);
    int exit_status = status == SL_OK ? check_racers(state) : ranks_report(status);
    if (exit_status == EXIT_DONE) {
        if (state->options.json)
            print_json(state);
        else
            print_text(state);
        exit_status = report_stdout();
    }
    race_end(state->racers, state->racer_count);
    return exit_status;
}

static int check_options(const allreduce_options *options) {
    if (!options->rounds || options->rounds > RACE_ROUNDS_MAX)
        return report_usage("--rounds is %zu; give 1 to %d", options->rounds, (int)RACE_ROUNDS_MAX);
    if (options->count > SIZE_MAX / 8) return report_usage("--count %zu is more than memory holds", options->count);
    const int algorithm = options->algorithm - 1; /* -1: all */
    const int puts = algorithm < 0 || algorithm == SL_ALLREDUCE_TORUS_PUT;
    if (options->tuning && algorithm != SL_ALLREDUCE_AUTO) return report_usage("--tuning is for --algorithm auto");
    if (options->shape && algorithm == SL_ALLREDUCE_AUTO)
        return report_usage("--shape is for torus and torus-put; --algorithm auto chooses its own");
    if ((options->sync || options->put_reduces) && !puts)
        return report_usage("--sync and --put-reduces are for --algorithm torus-put");
    if (options->lane && !puts && algorithm != SL_ALLREDUCE_TORUS)
        return report_usage("--lane is for torus and torus-put");
    if (options->chunk && !puts && !options->shared) return report_usage("--chunk is for torus-put and --shared");
    if (options->machine_ranks && !options->shared) return report_usage("--machine-ranks is for --shared");
    return EXIT_DONE;
}

static int run_allreduce(const command *self, int argc, char **argv) {
    static state state;
    state = (struct state){.options = {.count = 1000000, .rounds = 10}};
    OPTIONS_PARSE(self, argc, argv, &state.options, NULL);
    int status = check_options(&state.options);
    void *log_ctx;
    sl_log_fn log = report_log(&log_ctx);
    if (status == EXIT_DONE) status = choose_racers(&state, log_ctx, log);
    if (status == EXIT_DONE && state.options.tuning) {
        sl_status read = sl_tuning_read(ranks(), state.options.tuning, &state.tuning);
        if (read != SL_OK) return ranks_report(read);
    }
    if (status != EXIT_DONE) return status;
    state.numbers = allocate(state.options.count, sizeof *state.numbers);
    status = ranks_agree(state.numbers ? EXIT_DONE : EXIT_FAILED);
    if (status == EXIT_DONE) status = run_race(&state);
    free(state.numbers);
    return status;
}

static const char *const operands[] = {NULL};

#define SL_X(name, word) "|" word
static const option allreduce_table[] = {
    {0, "algorithm", OPTION_WORD, "all" SL_ALLREDUCE_MAP(SL_X), 0, offsetof(allreduce_options, algorithm),
     "What to measure: all (default), each in turn in every round, or one. auto takes the fastest of a table of "
     "'tune', "
     "or chooses by the number of ranks."},
    {0, "shape", OPTION_TEXT, "MxN", 0, offsetof(allreduce_options, shape),
     "Rows and columns of torus and torus-put: MxN ranks. Default: as near the square as they can be."},
    {0, "lane", OPTION_WORD, SL_LANE_WORDS, 0, offsetof(allreduce_options, lane),
     "How rows and columns of a torus reduce: by halving (default), or round a ring."},
    {0, "sync", OPTION_WORD, SL_SYNC_WORDS, 0, offsetof(allreduce_options, sync),
     "How the windows of torus-put synchronise: all ranks of a row (fence, default), or partners alone (pscw)."},
    {0, "put-reduces", OPTION_FLAG, NULL, 0, offsetof(allreduce_options, put_reduces),
     "torus-put: also the reduce-scatter is by MPI_Put."},
    {0, "shared", OPTION_FLAG, NULL, 0, offsetof(allreduce_options, shared),
     "Ranks of one machine first add up through shared memory. One rank of each machine goes on the wire."},
    {0, "machine-ranks", OPTION_COUNT, "N", 0, offsetof(allreduce_options, machine_ranks),
     "--shared: ranks that share memory, at most. Default: all of a machine."},
    {0, "count", OPTION_COUNT, "N", 0, offsetof(allreduce_options, count), "Numbers of a sum (default 1000000)."},
    {0, "type", OPTION_WORD, SL_WIRE_WORDS, 0, offsetof(allreduce_options, type),
     "How numbers travel: f32 (default), or bf16, which halves the bytes and rounds."},
    {0, "chunk", OPTION_COUNT, "N", 0, offsetof(allreduce_options, chunk),
     "Numbers that torus-put and shared memory handle at a time. Default: chosen."},
    {0, "rounds", OPTION_COUNT, "N", 0, offsetof(allreduce_options, rounds),
     "Sums of each algorithm (default 10), after one that does not count. Median, least and most are printed."},
    {0, "tuning", OPTION_TEXT, "TABLE", 0, offsetof(allreduce_options, tuning),
     "The table of 'shortlist-mpi tune' that --algorithm auto reads. A table of another job is not used, and "
     "SHORTLIST_LOG=warn says why."},
    {0, "verify", OPTION_FLAG, NULL, 0, offsetof(allreduce_options, verify),
     "Compare with exact sums on every rank, the bits between ranks, and the messages and bytes with the formulas."},
    OPTION_JSON(allreduce_options),
    OPTION_LAST};
#undef SL_X

const command command_allreduce = {
    .name = "allreduce",
    .summary = "measure and verify sums over the ranks",
    .synopsis = "mpirun -np N shortlist-mpi allreduce [--algorithm A] [--shape MxN] [--count N] [--verify] ...",
    .description =
        "Sums arrays of floats over all ranks by each algorithm that training can use, and prints the times, "
        "and what a rank sends. docs/CLUSTER.md describes the algorithms.\n",
    .examples = "mpirun -np 8 --hostfile hosts shortlist-mpi allreduce --count 2350000 --verify\n"
                "mpirun -np 8 --hostfile hosts shortlist-mpi allreduce --algorithm torus-put --shape 2x4\n",
    .operands = operands,
    .options = allreduce_table,
    .run = run_allreduce,
};
