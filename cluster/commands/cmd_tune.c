/* `tune`: measures every all-reduce by size, and keeps a table of the fastest. */
#include "base/system.h"
#include "cli/common/json_out.h"
#include "cli/common/output.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cluster/allreduce/tuning.h"
#include "cluster/commands/commands.h"
#include "cluster/commands/ranks.h"
#include "cluster/commands/reduce_race.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Racers of one size, and bytes of the first size, each next one being four times as much. */
enum { RACERS_MAX = 512, LEAST_BYTES = 1024, GROWTH = 4 };
/* Rounds of each racer alone. Those that are SLOW times slower than the fastest are then left out, and all but a few
 * finalists. */
enum { TRIAL_ROUNDS = 2, FINALISTS = 4 };
#define SLOW 2.0

typedef struct tune_options {
    const char *output;
    size_t least, largest, time;
    int type, json;
} tune_options;

typedef struct state {
    tune_options options;
    sl_tuning tuning;
    racer racers[RACERS_MAX];
    float *numbers;
    double limit_s; /* of one size */
} state;

/* Lowers the largest sum to what the machines' memory holds. Each rank has the numbers, and three buffers of as many
 * for each finalist at most. All may take half of the memory. */
static sl_status bound_memory(state *state) {
    const uint64_t memory = sl_system_memory(), buffers = 1 + 3 * FINALISTS;
    const uint64_t share = memory / 2 / buffers / state->tuning.machine_ranks;
    uint64_t most = state->options.largest;
    if (memory && share < most) most = share;
    SL_TRY(sl_comm_min(ranks(), &most));
    state->options.largest = most;
    return SL_OK;
}

static double time_of_rounds(const racer *racers, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t round = 0; round < racers[i].rounds; round++)
            sum += racers[i].seconds[round];
    return sum;
}

/* Returns whether windows failed, so that another algorithm ran in the racer's place. */
static int is_replaced(const racer *racer) {
    return racer->used.algorithm != racer->params.algorithm;
}

/* Moves the finalists to the front, the fastest first, and frees the others. Returns how many there are. `mpi` is never
 * replaced, so there is one. */
static size_t choose_finalists(racer *racers, size_t count) {
    size_t stay = 0;
    for (; stay < FINALISTS && stay < count; stay++) {
        size_t best = count;
        for (size_t i = stay; i < count; i++)
            if (!is_replaced(&racers[i]) && (best == count || racers[i].median < racers[best].median)) best = i;
        if (best == count || racers[best].median > SLOW * racers[stay ? 0 : best].median) break;
        const racer moved = racers[best];
        racers[best] = racers[stay];
        racers[stay] = moved;
    }
    race_end(racers + stay, count - stay);
    return stay;
}

/* Runs a racer alone. Its first sum touches the buffers, and does not count. */
static sl_status try_alone(state *state, racer *racer, size_t count) {
    SL_TRY(race_prepare(racer, 1, count));
    for (size_t round = 0; round <= TRIAL_ROUNDS; round++) {
        SL_TRY(race_round(racer, 1, state->numbers, count));
        if (round == 0) racer->rounds = 0;
    }
    race_rest(racer);
    return SL_OK;
}

/* Finds the finalists, and races them until the time of a size is used up. All ranks know the same times. */
static sl_status race(state *state, size_t *racer_count, size_t count) {
    racer *racers = state->racers;
    for (size_t i = 0; i < *racer_count; i++)
        SL_TRY(try_alone(state, &racers[i], count));
    race_rank(racers, *racer_count);
    const size_t all = *racer_count;
    *racer_count = choose_finalists(racers, all);
    if (*racer_count > 1) SL_TRY(race_prepare(racers, *racer_count, count));
    while (*racer_count > 1 && racers[0].rounds < RACE_ROUNDS_MAX &&
           time_of_rounds(racers, *racer_count) < state->limit_s)
        SL_TRY(race_round(racers, *racer_count, state->numbers, count));
    race_rank(racers, *racer_count);
    return SL_OK;
}

/* Measures one size, and adds its winner to the table. */
static sl_status tune_size(state *state, size_t bytes) {
    const sl_allreduce_params base = {.wire = (sl_wire)state->options.type};
    size_t racer_count = race_all(&base, &state->tuning, state->racers, RACERS_MAX);
    sl_status status = race(state, &racer_count, bytes / sizeof(float));
    if (status == SL_OK) {
        const racer *best = &state->racers[0];
        for (size_t i = 1; i < racer_count; i++)
            if (state->racers[i].median < best->median) best = &state->racers[i];
        sl_tuning_entry entry = {.bytes = 2 * bytes, .seconds = best->median, .params = best->used};
        sl_tuning_add(&state->tuning, &entry);
        if (!state->options.json)
            printf("%10zu bytes: %s %zux%zu%s, %.4g ms\n", bytes, sl_allreduce_name(best->used.algorithm),
                   best->used.rows, best->used.columns, best->used.shared ? " shared" : "", 1e3 * best->median);
        fflush(stdout);
    }
    race_end(state->racers, racer_count);
    return status;
}

static sl_status tune(state *state) {
    size_t sizes = 0;
    SL_TRY(sl_tuning_describe(ranks(), (sl_wire)state->options.type, &state->tuning));
    SL_TRY(bound_memory(state));
    for (size_t bytes = state->options.least; bytes <= state->options.largest; bytes *= GROWTH)
        sizes++;
    if (!sizes)
        return sl_fail(SL_EINVAL, "--largest is %zu bytes after memory is shared out; give at least --least, %zu",
                       state->options.largest, state->options.least);
    state->limit_s = (double)state->options.time / (double)sizes;
    state->numbers = allocate(state->options.largest / sizeof(float) + 1, sizeof *state->numbers);
    SL_TRY(sl_comm_agree(ranks(), state->numbers ? SL_OK : sl_fail(SL_ENOMEM, "no memory for the numbers")));
    for (size_t bytes = state->options.least; bytes <= state->options.largest; bytes *= GROWTH)
        SL_TRY(tune_size(state, bytes));
    return SL_OK;
}

/* Writes the table on rank 0. */
static int write_table(const state *state) {
    char *text = NULL;
    size_t size;
    output *output;
    if (ranks()->rank != 0) return EXIT_DONE;
    FILE *memory = open_memstream(&text, &size);
    if (!memory) return report_failure("no memory for the table");
    sl_tuning_print(&state->tuning, memory);
    fclose(memory);
    int status = output_create(state->options.output, &output);
    if (status == EXIT_DONE) {
        status = output_write(output, text, size);
        if (status == EXIT_DONE)
            status = output_commit(output);
        else
            output_discard(output);
    }
    free(text);
    return status;
}

static void print_json(const state *state) {
    json json;
    json_begin(&json, stdout);
    json_text(&json, "output", state->options.output);
    json_count(&json, "ranks", ranks()->ranks);
    json_count(&json, "machines", state->tuning.machines);
    json_count(&json, "machine_ranks", state->tuning.machine_ranks);
    json_text(&json, "mpi", state->tuning.mpi);
    json_open_array(&json, "entries");
    for (size_t i = 0; i < state->tuning.count; i++) {
        const sl_tuning_entry *entry = &state->tuning.entries[i];
        json_open_object(&json, NULL);
        json_count(&json, "bytes", entry->bytes);
        json_text(&json, "algorithm", sl_allreduce_name(entry->params.algorithm));
        json_count(&json, "rows", entry->params.rows);
        json_count(&json, "columns", entry->params.columns);
        json_flag(&json, "shared", entry->params.shared);
        json_real(&json, "seconds", entry->seconds);
        json_close_object(&json);
    }
    json_close_array(&json);
    json_end(&json);
}

static int check_options(const tune_options *options) {
    const char *const inputs[] = {NULL};
    if (options->least < sizeof(float) || options->largest < options->least || options->largest > SIZE_MAX / 8)
        return report_usage("--least is %zu and --largest %zu; give 4 bytes or more, the larger one last",
                            options->least, options->largest);
    return ranks_agree(ranks()->rank == 0 ? output_check(options->output, inputs) : EXIT_DONE);
}

static int run_tune(const command *self, int argc, char **argv) {
    static state state;
    state = (struct state){.options = {.least = LEAST_BYTES, .largest = (size_t)256 << 20, .time = 60}};
    OPTIONS_PARSE(self, argc, argv, &state.options, NULL);
    int status = check_options(&state.options);
    if (status != EXIT_DONE) return status;
    sl_status tuned = tune(&state);
    free(state.numbers);
    if (tuned != SL_OK) return ranks_report(tuned);
    status = ranks_agree(write_table(&state));
    if (status == EXIT_DONE && state.options.json) print_json(&state);
    return status == EXIT_DONE ? report_stdout() : status;
}

static const char *const operands[] = {NULL};

static const option tune_table[] = {
    {'o', "output", OPTION_TEXT, "TABLE", 1, offsetof(tune_options, output), "The table to write, as text."},
    {0, "type", OPTION_WORD, SL_WIRE_WORDS, 0, offsetof(tune_options, type),
     "How numbers travel: f32 (default) or bf16. A table serves one type."},
    {0, "least", OPTION_BYTES, "SIZE", 0, offsetof(tune_options, least),
     "Bytes of the smallest sum (default 1K). Each next size is four times as much."},
    {0, "largest", OPTION_BYTES, "SIZE", 0, offsetof(tune_options, largest),
     "Bytes of the largest sum (default 256M). A twenty-sixth of a machine's memory, shared out among its ranks, "
     "bounds it too."},
    {0, "time", OPTION_COUNT, "SECONDS", 0, offsetof(tune_options, time),
     "Seconds of the sums of finalists (default 60), shared out evenly among the sizes. Before that, every algorithm "
     "has three sums."},
    OPTION_JSON(tune_options),
    OPTION_LAST};

const command command_cluster_tune = {
    .name = "tune",
    .summary = "find the fastest all-reduce for each size",
    .synopsis = "mpirun -np N shortlist-mpi tune -o TABLE [--type f32|bf16] [--time SECONDS] ...",
    .description =
        "Measures all algorithms, and all shapes of the torus, over sizes of sums. The table keeps the fastest one for "
        "each range of bytes. Training and 'allreduce --algorithm auto' read it by --tuning. A table serves jobs of "
        "the "
        "same ranks, machines, ranks per machine, MPI and type.\n",
    .examples = "mpirun -np 8 --hostfile hosts shortlist-mpi tune -o hosts8.tuning\n",
    .operands = operands,
    .options = tune_table,
    .run = run_tune,
};
