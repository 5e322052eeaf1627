/* `train` on all ranks. */
#define _GNU_SOURCE
#include "cli/common/output.h"
#include "cli/common/report.h"
#include "cli/ranker/training.h"
#include "cluster/allreduce/tuning.h"
#include "cluster/commands/commands.h"
#include "cluster/commands/places.h"
#include "cluster/commands/ranks.h"
#include "cluster/train/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ranks_options {
    train_options train; /* first: the shared table has the offsets of this struct */
    size_t batch, warm_up, bucket, shard;
    int rate, wire, no_overlap, shared;
    const char *algorithm, *tuning;
} ranks_options;

typedef struct ranks_training {
    const ranks_options *options;
    sl_tuning tuning; /* the table of --tuning */
    train_state state;
    const char *const *paths;
    size_t path_count;
    sl_cluster_report exchanged;
} ranks_training;

/* Fills in how the ranks train together. */
static void set_ranks(const ranks_training *t, sl_cluster_training *training) {
    const ranks_options *options = t->options;
    training->on = (sl_train_ranks){.batch_rows = options->batch,
                                    .scaling = (sl_rate_scaling)options->rate,
                                    .warm_up_steps = options->warm_up,
                                    .bucket = options->bucket / sizeof(float),
                                    .shard = options->shard,
                                    .no_overlap = options->no_overlap};
    const sl_allreduce_algorithm usual = options->tuning ? SL_ALLREDUCE_AUTO : SL_ALLREDUCE_MPI;
    training->reduce =
        (sl_allreduce_params){.algorithm = options->algorithm ? sl_allreduce_of_name(options->algorithm) : usual,
                              .tuning = options->tuning ? &t->tuning : NULL,
                              .wire = options->wire ? SL_WIRE_BF16 : SL_WIRE_F32,
                              .shared = options->shared || (!options->algorithm && !options->tuning)};
    training->reduce.log = report_log(&training->reduce.log_ctx);
}

/* Rank 0 alone shows progress, and hears of epochs. */
static void silence(sl_train_params *params) {
    params->epoch = NULL;
    params->log = NULL;
}

/* Reads the table of --tuning. One of another job is left out with a warning: the training then takes the default. */
static sl_status read_table(ranks_training *t, sl_allreduce_params *params) {
    sl_tuning job;
    char why[256];
    if (!t->options->tuning) return SL_OK;
    SL_TRY(sl_tuning_read(ranks(), t->options->tuning, &t->tuning));
    SL_TRY(sl_tuning_describe(ranks(), params->wire, &job));
    if (sl_tuning_fits(&t->tuning, &job, why, sizeof why)) return SL_OK;
    if (ranks()->rank == 0)
        report_warning("%s: %s; the table is left out. Make one for this job by 'shortlist-mpi tune'",
                       t->options->tuning, why);
    params->tuning = NULL;
    params->algorithm = SL_ALLREDUCE_MPI;
    params->shared = 1;
    return SL_OK;
}

static int train_on_ranks(ranks_training *t) {
    train_state *state = &t->state;
    sl_train_params params;
    sl_cluster_training training = {
        .spec = state->spec, .paths = t->paths, .path_count = t->path_count, .valid = state->options->valid};
    train_begin(state, &params);
    if (ranks()->rank != 0) silence(&params);
    training.params = &params;
    set_ranks(t, &training);
    sl_status status = read_table(t, &training.reduce);
    if (status == SL_OK) status = sl_cluster_train(ranks(), &training, &state->ranker, &state->report, &t->exchanged);
    train_end(state, status);
    if (status == SL_OK) return EXIT_DONE;
    return status == SL_ECANCELED ? train_report_interrupted(state) : ranks_report(status);
}

/* Of bytes that pass through all ranks: what one rank sends if messages go round a ring. */
static uint64_t sent_by_a_rank(uint64_t bytes) {
    return bytes * (ranks()->ranks - 1) / ranks()->ranks;
}

static void print_sparse(json *json, const sl_sparse_traffic *sparse) {
    const struct {
        const char *key;
        uint64_t bytes;
    } fields[] = {{"bytes", sparse->moved},
                  {"least_bytes", sparse->least},
                  {"unique_rows_bytes", sparse->unique},
                  {"dense_bytes", sparse->dense},
                  {"raw_rows_bytes", sparse->raw}};
    json_open_object(json, "sparse");
    json_count(json, "steps", sparse->steps);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        json_count(json, fields[i].key, sent_by_a_rank(fields[i].bytes));
    json_close_object(json);
}

static void print_more(json *json, const void *ctx) {
    const ranks_training *t = ctx;
    const sl_cluster_report *exchanged = &t->exchanged;
    if (!json) {
        printf("%zu ranks, all with the weights %08x; rank 0 sent %llu bytes in %llu messages, dense gradients by %s\n",
               ranks()->ranks, (unsigned)exchanged->weights_crc, (unsigned long long)exchanged->sent.bytes,
               (unsigned long long)exchanged->sent.messages, sl_allreduce_name(exchanged->algorithm));
        if (ranks()->ranks > 1 && exchanged->sparse.steps)
            printf("wide weights and embeddings: %llu bytes a step and rank; a row for each occurrence would be %llu\n",
                   (unsigned long long)(sent_by_a_rank(exchanged->sparse.moved) / exchanged->sparse.steps),
                   (unsigned long long)(sent_by_a_rank(exchanged->sparse.raw) / exchanged->sparse.steps));
        return;
    }
    char hash[16];
    snprintf(hash, sizeof hash, "%08x", (unsigned)exchanged->weights_crc);
    json_count(json, "ranks", ranks()->ranks);
    json_text(json, "weights", hash);
    json_text(json, "algorithm", sl_allreduce_name(exchanged->algorithm));
    json_count(json, "sent_bytes", exchanged->sent.bytes);
    json_count(json, "sent_messages", exchanged->sent.messages);
    print_sparse(json, &exchanged->sparse);
}

/* Prints where the ranks run, if the user wants to see the progress. */
static int print_places(const ranks_training *t) {
    place *places;
    sl_status status = places_gather(t->state.options->threads, &places);
    if (status != SL_OK) return ranks_report(status);
    if (ranks()->rank == 0 && t->state.options->progress) places_print(stderr, places);
    free(places);
    return EXIT_DONE;
}

/* Checks that no output takes the place of a file of rows. */
static int check_outputs(const ranks_training *t) {
    const train_options *options = t->state.options;
    for (size_t i = 0; i < t->path_count; i++) {
        const char *path = t->paths[i];
        if (is_same_file(path, options->output) || (options->checkpoint && is_same_file(path, options->checkpoint)))
            return report_failure("%s: named for rows and for an output; name another file for one", path);
    }
    return train_check_outputs(&t->state);
}

static int train_and_save(ranks_training *t) {
    train_state *state = &t->state;
    int status = ranks_agree(ranks()->rank == 0 ? check_outputs(t) : EXIT_DONE);
    if (status == EXIT_DONE) status = ranks_agree(train_open(state));
    if (status == EXIT_DONE) status = ranks_check_same("spec", state->spec, strlen(state->spec));
    if (status == EXIT_DONE) status = print_places(t);
    if (status == EXIT_DONE) status = ranks_agree(train_on_ranks(t));
    /* Rank 0 has the model that all have. */
    if (status == EXIT_DONE) status = ranks_agree(ranks()->rank == 0 ? train_save(state) : EXIT_DONE);
    if (status == EXIT_DONE && ranks()->rank == 0) status = train_print(state, print_more, t);
    return ranks_agree(status);
}

static int check_usage(const ranks_options *options) {
    if (options->algorithm && sl_allreduce_of_name(options->algorithm) == SL_ALLREDUCE_COUNT)
        return report_usage("--algorithm is '%s', which is none of those that 'allreduce' measures",
                            options->algorithm);
    if (options->tuning && options->algorithm && sl_allreduce_of_name(options->algorithm) != SL_ALLREDUCE_AUTO)
        return report_usage("--tuning is for --algorithm auto");
    if (options->rate != SL_RATES_KEPT && !options->batch)
        return report_usage("--scale-rates needs --batch N, the mini-batch that the rates are scaled to");
    if (options->warm_up && options->rate == SL_RATES_KEPT)
        return report_usage("--warm-up needs --scale-rates linear or sqrt: it leads from the spec's rates to these");
    return train_options_check(&options->train);
}

static int run_train(const command *self, int argc, char **argv) {
    ranks_options options = {.train = TRAIN_DEFAULT};
    const char *paths[OPERANDS_MAX] = {NULL};
    OPTIONS_PARSE(self, argc, argv, &options, paths);
    int usage = check_usage(&options);
    if (usage != EXIT_DONE) return usage;
    if (ranks()->rank != 0) options.train.progress = 0;
    sl_status status = places_threads(options.train.threads, &options.train.threads);
    if (status != SL_OK) return ranks_report(status);
    ranks_training training = {.options = &options, .paths = paths + 1};
    training.state = (train_state){.options = &options.train, .spec_path = paths[0], .data_path = paths[1]};
    while (training.path_count + 1 < OPERANDS_MAX && paths[training.path_count + 1])
        training.path_count++;
    int result = train_and_save(&training);
    train_close(&training.state);
    return result;
}

static const char *const operands[] = {"SPEC.json", "DATA.csv", "[DATA.csv...]", NULL};

static const option ranks_table[] = {
    {0, "batch", OPTION_COUNT, "N", 0, offsetof(ranks_options, batch),
     "Rows of a mini-batch over all ranks; 0 (default) takes the spec's. Each rank has its share of them."},
    {0, "scale-rates", OPTION_WORD, "none|linear|sqrt", 0, offsetof(ranks_options, rate),
     "Scale the rates with --batch: by the factor to the spec's mini-batch, by its square root, or not (default)."},
    {0, "warm-up", OPTION_COUNT, "STEPS", 0, offsetof(ranks_options, warm_up),
     "With --scale-rates: steps in which the rates rise from the spec's to the scaled ones; 0 (default): none."},
    {0, "algorithm", OPTION_TEXT, "A", 0, offsetof(ranks_options, algorithm),
     "All-reduce of the dense gradients: mpi, auto, ring, rabenseifner, torus, torus-put or bine. Default: mpi with "
     "--shared. 'shortlist-mpi allreduce' measures them."},
    {0, "tuning", OPTION_TEXT, "TABLE", 0, offsetof(ranks_options, tuning),
     "The table of 'shortlist-mpi tune' that chooses the all-reduce by size. Its choices include shared memory. A "
     "table of another job is left out with a warning."},
    {0, "shared", OPTION_FLAG, NULL, 0, offsetof(ranks_options, shared),
     "Ranks of one machine first add up their gradients through shared memory."},
    {0, "wire", OPTION_WORD, "f32|bf16", 0, offsetof(ranks_options, wire),
     "Numbers that dense gradients travel in. bf16 halves the bytes; sums are made in f32, except those of mpi."},
    {0, "bucket", OPTION_BYTES, "BYTES", 0, offsetof(ranks_options, bucket),
     "Bytes of dense gradients that are summed at once, at most; 0 (default): 1M."},
    {0, "shard", OPTION_BYTES, "BYTES", 0, offsetof(ranks_options, shard),
     "Divide the rows of embedding tables of this size or more among the ranks: each steps its own rows, and ranks "
     "exchange the rows that a mini-batch uses; 0 (default): none."},
    {0, "no-overlap", OPTION_FLAG, NULL, 0, offsetof(ranks_options, no_overlap),
     "Begin the sums after the backward pass, not during it. For measuring."},
    OPTION_LAST};

const command command_cluster_train = {
    .name = "train",
    .summary = "train a model that ranks, on all ranks",
    .synopsis = "mpirun -np N shortlist-mpi train SPEC.json DATA.csv... -o MODEL [--valid CSV] [--batch N] "
                "[--scale-rates none|linear|sqrt] [--warm-up STEPS] [--algorithm A] [--tuning TABLE] [--shared] "
                "[--wire f32|bf16] "
                "[--bucket BYTES] [--shard BYTES] [--no-overlap] [options of shortlist train]",
    .description =
        "Trains one model as 'shortlist train' does, on all ranks at once. Each rank reads a part of the rows: a range "
        "of bytes of the files, in whole rows. Statistics, vocabularies and validation rows are those of one process. "
        "A mini-batch has the spec's rows over all ranks, so the model is as good as that of one process.\nGradients "
        "are added up over the ranks: those of the layers in buckets while the backward pass goes on, those of wide "
        "weights and embeddings by touched rows or by whole tables, whichever is fewer bytes.\nAll ranks end with the "
        "same model, which a checksum proves, and rank 0 writes it. Rank 0 also writes the checkpoint, and --resume "
        "goes on from it with any number of ranks. Every rank must be able to read SPEC.json and DATA.csv.\n",
    .examples = "mpirun -np 4 --hostfile hosts shortlist-mpi train spec.json clicks.csv -o model.slr --progress\n"
                "mpirun -np 8 shortlist-mpi train spec.json day1.csv day2.csv -o model.slr --checkpoint state.slr "
                "--resume\n"
                "srun -n 64 shortlist-mpi train spec.json clicks.csv -o model.slr --batch 65536 --scale-rates linear "
                "--warm-up 200\n",
    .operands = operands,
    .options = ranks_table,
    .shared = train_table,
    .run = run_train,
};
