/* `split`: one index per rank, and the routing file that says which of them a query asks. */
#include "cli/common/json_out.h"
#include "cli/common/output.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cli/files/ids.h"
#include "cli/index/add_vectors.h"
#include "cluster/commands/commands.h"
#include "cluster/commands/places.h"
#include "cluster/commands/ranks.h"
#include "cluster/commands/same_inputs.h"
#include "cluster/commands/split_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const kind_names[] = {"slices", "neighbourhoods"};

static int check_options(const split_options *options) {
    const size_t parts = options->parts ? options->parts : ranks()->ranks;
    if (parts > SL_SPLIT_MAX_PARTS)
        return report_failure("%zu parts; a split has at most %u", parts, SL_SPLIT_MAX_PARTS);
    if (options->cells == 0) return report_failure("--cells is 0; ask for at least 1");
    if (options->replicate > 1)
        return report_failure("--replicate is %g; ask for a share from 0 to 1", options->replicate);
    return EXIT_DONE;
}

/* Makes the folder, and tries the routing file: rank 0 writes it, long after. */
static int prepare_output(const split_job *job) {
    const char *folder = job->options->output;
    const char *const inputs[] = {job->base_path, job->options->ids, NULL};
    char path[SL_SPLIT_PATH];
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return report_failure("cannot make the folder %s: %s", folder, strerror(errno));
    sl_status status = sl_split_routing_path(folder, path);
    if (status != SL_OK) return report_status(NULL, status);
    return ranks()->rank == 0 ? output_check(path, inputs) : EXIT_DONE;
}

static int open_inputs(split_job *job) {
    const split_options *options = job->options;
    int status = vectors_open(job->base_path, VECTORS_BASE, &job->base);
    if (status == EXIT_DONE) status = vectors_check_metric(job->base, (sl_metric)options->metric);
    if (status != EXIT_DONE) return status;
    size_t n = job->base->n;
    job->type = element_of_dtype(element_dtype(job->base->type));
    if (options->ids) status = vectors_read_ids(options->ids, job->base_path, &n, &job->ids);
    if (status == EXIT_DONE && options->ids) status = ids_check_distinct(options->ids, job->ids, n);
    return status;
}

/* Checks the options of the parts' indexes, on an index of no vectors. */
static int check_index(const split_job *job) {
    sl_index *index;
    sl_status status = split_create_index(job, &index);
    if (status != SL_OK) return report_status(NULL, status);
    sl_index_free(index);
    return EXIT_DONE;
}

/* Compares the ranks' bases and ids. */
static int check_same(const split_job *job) {
    input_facts facts = {0};
    int status = inputs_note_vectors(&facts, "base", job->base, job->type);
    inputs_note_words(&facts, "checksum of the ids", job->ids, job->base->n);
    return inputs_check_same(status, &facts);
}

static int prepare_split(split_job *job) {
    const split_options *options = job->options;
    const size_t parts = options->parts ? options->parts : ranks()->ranks;
    sl_split *split = &job->split;
    sl_status status = SL_OK;
    split->parts = sl_mem_array(&split->allocator, parts, sizeof *split->parts, &status);
    if (status != SL_OK) return report_status(NULL, status);
    split->facts = (sl_split_facts){.n = job->base->n,
                                    .stored = job->base->n,
                                    .kind = (uint32_t)options->kind,
                                    .metric = (uint32_t)options->metric,
                                    .dtype = element_dtype(job->base->type),
                                    .dim = (uint32_t)job->base->dim,
                                    .parts = (uint32_t)parts};
    job->first = sl_comm_share(parts, ranks()->rank, ranks()->ranks);
    job->end = sl_comm_share(parts, ranks()->rank + 1, ranks()->ranks);
    if (options->kind == SL_SPLIT_NEIGHBOURHOODS && job->base->n < 2 * parts)
        return report_failure("%s: has %zu vectors, too few for %zu parts; ask for fewer with --parts", job->base_path,
                              job->base->n, parts);
    return EXIT_DONE;
}

static uint64_t largest_part(const sl_split *split) {
    uint64_t most = 0;
    for (size_t p = 0; p < split->facts.parts; p++)
        if (split->parts[p].n > most) most = split->parts[p].n;
    return most;
}

static void print_json(const split_job *job) {
    const sl_split *split = &job->split;
    json json;
    json_begin(&json, stdout);
    json_count(&json, "n", split->facts.n);
    json_count(&json, "dim", split->facts.dim);
    json_text(&json, "metric", sl_metric_name((sl_metric)split->facts.metric));
    json_text(&json, "split", kind_names[split->facts.kind]);
    json_count(&json, "ranks", ranks()->ranks);
    json_count(&json, "threads", thread_count(job->options->threads));
    json_count(&json, "stored", split->facts.stored);
    json_real(&json, "replication", (double)split->facts.stored / (double)split->facts.n - 1);
    json_count(&json, "cells", split->facts.cells);
    json_count(&json, "groups", split->facts.groups);
    json_open_array(&json, "parts");
    for (size_t p = 0; p < split->facts.parts; p++)
        json_count(&json, NULL, split->parts[p].n);
    json_close_array(&json);
    json_count(&json, "largest_part", largest_part(split));
    json_open_array(&json, "reaches");
    for (size_t i = 0; i < split->facts.reaches; i++) {
        json_open_object(&json, NULL);
        json_real(&json, "share", split->reaches[i].share);
        json_real(&json, "reach", (double)split->reaches[i].reach);
        json_real(&json, "asked", (double)split->reaches[i].asked);
        json_close_object(&json);
    }
    json_close_array(&json);
    json_real(&json, "place_s", job->place_s);
    json_real(&json, "build_s", job->build_s);
    json_text(&json, "output", job->options->output);
    json_end(&json);
}

static void print_text(const split_job *job) {
    const sl_split *split = &job->split;
    uint64_t least = UINT64_MAX;
    for (size_t p = 0; p < split->facts.parts; p++)
        if (split->parts[p].n < least) least = split->parts[p].n;
    printf("%s: %llu vectors of %u, %s, in %u %s of %llu to %llu vectors\n", job->options->output,
           (unsigned long long)split->facts.n, split->facts.dim, sl_metric_name((sl_metric)split->facts.metric),
           split->facts.parts, kind_names[split->facts.kind], (unsigned long long)least,
           (unsigned long long)largest_part(split));
    if (split->facts.kind == SL_SPLIT_NEIGHBOURHOODS)
        printf("%u cells; %.1f %% of the vectors are in two parts; ", split->facts.cells,
               100 * ((double)split->facts.stored / (double)split->facts.n - 1));
    printf("placed in %.1f s, built in %.1f s\n", job->place_s, job->build_s);
}

/* Removes what an earlier split into more parts has left. */
static void remove_older_parts(const split_job *job) {
    char path[SL_SPLIT_PATH];
    for (size_t part = job->split.facts.parts; part < SL_SPLIT_MAX_PARTS; part++)
        if (sl_split_part_path(job->options->output, part, path) == SL_OK) (void)remove(path);
}

static int run_job(split_job *job) {
    int status = ranks_agree(check_options(job->options));
    if (status == EXIT_DONE) status = ranks_agree(open_inputs(job));
    if (status == EXIT_DONE) status = ranks_agree(check_index(job));
    if (status == EXIT_DONE) status = check_same(job);
    if (status == EXIT_DONE) status = ranks_agree(prepare_split(job));
    if (status == EXIT_DONE) status = ranks_agree(prepare_output(job));
    if (status == EXIT_DONE && job->options->kind == SL_SPLIT_NEIGHBOURHOODS) status = split_move_rows(job);
    if (status == EXIT_DONE) status = split_build_parts(job);
    if (status == EXIT_DONE && ranks()->rank == 0) {
        sl_status saved = sl_split_save(&job->split, job->options->output);
        if (saved == SL_OK)
            remove_older_parts(job);
        else
            status = report_status(NULL, saved);
    }
    status = ranks_agree(status);
    if (status != EXIT_DONE) return status;
    if (job->options->json)
        print_json(job);
    else
        print_text(job);
    return report_stdout();
}

static int run_split(const command *self, int argc, char **argv) {
    sl_index_params defaults;
    sl_index_params_init(&defaults);
    split_options options = {.codes = -1,
                             .kind = SL_SPLIT_NEIGHBOURHOODS,
                             .refine = (int)defaults.refine,
                             .replicate = 0.3,
                             .cells = 128,
                             .m = defaults.m,
                             .ef_build = defaults.ef_construction,
                             .seed = (size_t)defaults.seed};
    const char *base;
    OPTIONS_PARSE(self, argc, argv, &options, &base);
    sl_status placed = places_threads(options.threads, &options.threads);
    if (placed != SL_OK) return ranks_report(placed);
    split_job job = {.options = &options, .base_path = base, .split = {.allocator = sl_allocator_of(NULL)}};
    int status = run_job(&job);
    for (size_t i = 0; job.rows && i < job.end - job.first; i++)
        sl_part_rows_free(&job.rows[i]);
    free(job.rows);
    free(job.ids);
    vectors_close(job.base);
    sl_split_free(&job.split);
    return status;
}

static const char *const operands[] = {"BASE", NULL};

static const option split_table[] = {
    {'o', "output", OPTION_TEXT, "DIR", 1, offsetof(split_options, output),
     "The folder of the parts, made if it is missing: part-0.sl, part-1.sl and so on, which are ordinary index files, "
     "and routing.sls, which appears last. All ranks must see the same folder."},
    {0, "metric", OPTION_WORD, "ip|cosine|l2", 1, offsetof(split_options, metric), "As for 'shortlist build'."},
    {0, "split", OPTION_WORD, "slices|neighbourhoods", 0, offsetof(split_options, kind),
     "neighbourhoods (default): near vectors share a part, and a query asks the parts that hold its neighbours. "
     "slices: "
     "each part has the next rows of BASE, and every query asks all parts."},
    {0, "parts", OPTION_COUNT, "N", 0, offsetof(split_options, parts),
     "Parts; 0 (default) makes one per rank. A rank builds and serves several parts, or none, where the numbers "
     "differ."},
    {0, "replicate", OPTION_REAL, "SHARE", 0, offsetof(split_options, replicate),
     "Share of the vectors that a second part may also hold (default 0.3): those nearest to a border. More copies let "
     "queries ask fewer parts."},
    {0, "cells", OPTION_COUNT, "N", 0, offsetof(split_options, cells),
     "k-means cells per part (default 128), 2048 in all at most. Near cells share a part."},
    {0, "codes", OPTION_WORD, "i8|i16|f32|i4", 0, offsetof(split_options, codes), "As for 'shortlist build'."},
    {0, "refine", OPTION_WORD, "none|f32|bf16|i16", 0, offsetof(split_options, refine), "As for 'shortlist build'."},
    {0, "m", OPTION_COUNT, "N", 0, offsetof(split_options, m), "As for 'shortlist build' (default 16)."},
    {0, "ef-build", OPTION_COUNT, "N", 0, offsetof(split_options, ef_build), "As for 'shortlist build' (default 200)."},
    {0, "ids", OPTION_TEXT, "FILE", 0, offsetof(split_options, ids),
     "One id per vector: a .npy or .ibin file of one column of whole numbers. Without it vectors are numbered from 0."},
    {0, "seed", OPTION_COUNT, "N", 0, offsetof(split_options, seed), "Seed of the nodes' levels (default 1)."},
    OPTION_THREADS(split_options, "Threads of each rank; 0 (default) takes as many as OMP_NUM_THREADS or the rank's "
                                  "CPUs give."),
    OPTION_JSON(split_options),
    OPTION_LAST};

const command command_cluster_split = {
    .name = "split",
    .summary = "divide a set into one index per rank",
    .synopsis = "mpirun -np N shortlist-mpi split BASE -o DIR --metric ip|cosine|l2 [--split slices|neighbourhoods] "
                "[--parts N] [--replicate SHARE] [--cells N] [--codes i8|i16|f32|i4] [--refine none|f32|bf16|i16] "
                "[--m N] [--ef-build N] [--ids FILE] [--seed N] [--threads N] [--json]",
    .description =
        "Every rank reads its share of BASE, receives the vectors of its parts from the others, and builds an index of "
        "each. 'shortlist-mpi search' and 'eval' take DIR in place of an index. The parts of neighbourhoods are of "
        "about "
        "the same size. The routing file keeps the cells, and how far a query must reach for its neighbours: that is "
        "learnt from 1000 vectors of BASE.\n",
    .examples = "mpirun -np 4 shortlist-mpi split base.fbin -o parts --metric cosine\n"
                "mpirun -np 4 shortlist-mpi split base.fbin -o slices --metric cosine --split slices\n",
    .operands = operands,
    .options = split_table,
    .run = run_split,
};
