/* The program shortlist-mpi. Rank 0 alone prints. The other ranks keep their messages until all agree on the end. */
#define _GNU_SOURCE
#include "cli/common/interrupt.h"
#include "cli/common/program.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cluster/comm/watch.h"
#include "cluster/commands/commands.h"
#include "cluster/commands/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const command *const commands[] = {
    &command_ranks,         &command_allreduce,
    &command_cluster_tune,  &command_cluster_train,
    &command_cluster_build, &command_cluster_truth,
    &command_cluster_split, &command_cluster_search,
    &command_cluster_eval,  NULL,
};

static const page_entry entries[] = {
    {"ENVIRONMENT", "SHORTLIST_MPI_PATIENCE",
     "Seconds (default 20) without a sign of life from a rank, after which the job ends: 3 or more; 0 waits for "
     "ever.\n"},
    {NULL, "SHORTLIST_MAX_ISA, SHORTLIST_LOG, OMP_NUM_THREADS", "As for the command shortlist.\n"},
    {"EXIT STATUS", NULL,
     "0 done; 1 failed, with one line on stderr that names the rank, its machine and the cause; 2 the command line was "
     "not understood. All ranks end with the same status.\n"},
    {NULL, NULL, NULL},
};

static const program shortlist_mpi = {
    .name = "shortlist-mpi",
    .summary = "train, build and search on many machines",
    .synopsis = "       mpirun -np N shortlist-mpi COMMAND ...\n       shortlist-mpi COMMAND --help\n"
                "       shortlist-mpi --version\n",
    .description = "Runs on every rank that mpirun or srun starts. docs/CLUSTER.md has scripts for a file of hosts and "
                   "for Slurm.\n",
    .commands = commands,
    .entries = entries,
    .examples = "       mpirun -np 4 --hostfile hosts shortlist-mpi ranks\n",
};

/* Checks that all ranks have the same command line. Their paths to the program may differ. */
static int check_arguments(int argc, char **argv) {
    size_t size = 0;
    for (int i = 1; i < argc; i++)
        size += strlen(argv[i]) + 1;
    char *joined = allocate(size + 1, 1), *to = joined;
    for (int i = 1; i < argc && joined; i++, to += strlen(to) + 1)
        strcpy(to, argv[i]);
    int status = ranks_agree(joined ? EXIT_DONE : EXIT_FAILED);
    if (status == EXIT_DONE) status = ranks_check_same("command line", joined, size);
    free(joined);
    return status;
}

/* Runs the command, and makes all ranks end alike. */
static int run_on_ranks(int argc, char **argv) {
    int status = report_log_install();
    if (status == EXIT_DONE && ranks()->rank != 0 && !freopen("/dev/null", "w", stdout))
        status = report_failure("/dev/null cannot be opened");
    /* The environments of machines may differ, so a wrong one is a failure of its rank. */
    status = ranks_agree(status == EXIT_DONE ? EXIT_DONE : EXIT_FAILED);
    if (status == EXIT_DONE) status = ranks_check_same("version", sl_version(), strlen(sl_version()));
    if (status == EXIT_DONE) status = check_arguments(argc, argv);
    if (status != EXIT_DONE) return status;
    return ranks_agree(program_run(&shortlist_mpi, argc, argv));
}

int main(int argc, char **argv) {
    sl_watch *watch = NULL;
    report_program(shortlist_mpi.name);
    sl_status status = ranks_start(&argc, &argv);
    if (status != SL_OK) return ranks_report_start(status);
    interrupt_install();
    status = sl_watch_start(ranks(), shortlist_mpi.name, &watch);
    int exit_status = status == SL_OK ? run_on_ranks(argc, argv) : ranks_report(status);
    (void)fflush(stdout);
    ranks_print_failure(exit_status);
    sl_watch_stop(watch);
    ranks_end();
    return exit_status;
}
