/* `ranks`: where the ranks of a job run. */
#include "cli/common/json_out.h"
#include "cli/common/report.h"
#include "cluster/commands/commands.h"
#include "cluster/commands/places.h"
#include "cluster/commands/ranks.h"

#include <stdlib.h>

typedef struct ranks_options {
    size_t threads;
    int json;
} ranks_options;

static void print_json(const place *places) {
    json json;
    json_begin(&json, stdout);
    json_open_array(&json, "ranks");
    for (size_t r = 0; r < ranks()->ranks; r++) {
        json_open_object(&json, NULL);
        json_count(&json, "rank", r);
        json_text(&json, "host", places[r].host);
        json_text(&json, "sockets", places[r].sockets);
        json_text(&json, "cpus", places[r].cpus);
        json_count(&json, "cpu_count", places[r].cpu_count);
        json_count(&json, "threads", places[r].threads);
        json_close_object(&json);
    }
    json_close_array(&json);
    json_end(&json);
}

static int run_ranks(const command *self, int argc, char **argv) {
    ranks_options options = {.threads = 0};
    place *places;
    OPTIONS_PARSE(self, argc, argv, &options, NULL);
    sl_status status = places_threads(options.threads, &options.threads);
    if (status != SL_OK) return ranks_report(status);
    status = places_gather(options.threads, &places);
    if (status == SL_OK && options.json)
        print_json(places);
    else if (status == SL_OK)
        places_print(stdout, places);
    free(places);
    return status == SL_OK ? report_stdout() : ranks_report(status);
}

static const char *const operands[] = {NULL};

static const option ranks_table[] = {
    OPTION_THREADS(ranks_options,
                   "Threads of each rank; 0 (default) takes as many as OMP_NUM_THREADS or the rank's CPUs "
                   "give."),
    OPTION_JSON(ranks_options), OPTION_LAST};

const command command_ranks = {
    .name = "ranks",
    .summary = "show where the ranks run",
    .synopsis = "mpirun -np N shortlist-mpi ranks [--threads N] [--json]",
    .description = "Lists every rank with its machine, its sockets and the ranks there, the CPUs that it may use, and "
                   "its threads. Run it first with the "
                   "hosts and the binding of a long job: a rank bound to one core trains on one core.\n",
    .examples = "mpirun -np 4 --hostfile hosts --map-by socket:PE=16 shortlist-mpi ranks\n",
    .operands = operands,
    .options = ranks_table,
    .run = run_ranks,
};
