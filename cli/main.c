/* The shortlist command. */
#include "cli/common/ending.h"
#include "cli/common/interrupt.h"
#include "cli/common/options.h"
#include "cli/common/report.h"
#include "cli/files/commands.h"
#include "cli/index/commands.h"
#include "cli/inspect/commands.h"
#include "cli/ranker/commands.h"
#include "cli/recommend/commands.h"
#include "cli/search/commands.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static const command *const commands[] = {
    &command_build,   &command_add,       &command_delete, &command_merge,    &command_rebuild, &command_search,
    &command_eval,    &command_tune,      &command_truth,  &command_info,     &command_check,   &command_snapshot,
    &command_convert, &command_train,     &command_prune,  &command_quantize, &command_predict, &command_evaluate,
    &command_items,   &command_recommend, &command_cpu,
};

#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static const command *find_command(const char *name) {
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

static int print_overview(void) {
    printf(
        "NAME\n       shortlist - find the nearest vectors, and rank them\n\nSYNOPSIS\n"
        "       shortlist COMMAND ...\n       shortlist COMMAND --help\n       shortlist --version\n\nDESCRIPTION\n");
    options_wrap(
        "Builds an index over a file of vectors, searches it, and measures how well and how fast. Trains a model that "
        "ranks what was found, and recommends with both.\n",
        7);
    printf("\nCOMMANDS\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("       %-10s %s\n", commands[i]->name, commands[i]->summary);
    printf("       %-10s %s\n", "help", "print this page, or that of a command");
    printf("\nENVIRONMENT\n");
    printf("       SHORTLIST_MAX_ISA\n");
    options_wrap(
        "Highest instruction-set tier to use: scalar, avx2, avxvnni, avx512bw, avx512vnni, amxint8 or neon; any other "
        "word means scalar.\n",
        15);
    printf("       SHORTLIST_LOG\n");
    options_wrap("Print the library's messages on stderr: error, warn, info or debug.\n", 15);
    printf("       OMP_NUM_THREADS, OMP_PROC_BIND, OMP_PLACES\n");
    options_wrap("How many threads work by default, and on which CPUs.\n", 15);
    printf("\nFILES\n");
    options_wrap(
        "Indexes and item tables are mapped, not read. Put another file in the place of one by renaming, as every "
        "command here does, and never by writing into it: a command whose file becomes shorter ends with exit status "
        "1. Where nobody can promise that, --place dram reads a copy, and tells damage.\n",
        7);
    printf("\nEXIT STATUS\n");
    options_wrap(
        "0 done; 1 failed, with one line on stderr that says what, where and what to do; 2 the command line "
        "was not understood. Interrupted by Ctrl-C, a command puts its files in order and ends by SIGINT, which a "
        "shell sees as 130.\n",
        7);
    printf("\nEXAMPLES\n"
           "       shortlist build base.fbin -o base.sl --metric cosine\n"
           "       shortlist truth base.fbin queries.fbin -k 10 --metric cosine -o truth.ibin\n"
           "       shortlist eval base.sl queries.fbin truth.ibin -k 10\n"
           "       shortlist search base.sl queries.fbin -k 10 --ef 100 -o found.ibin\n"
           "       shortlist train spec.json clicks.csv -o model.slr\n"
           "       shortlist items films.csv -o films.sli --id film\n"
           "       shortlist recommend base.sl model.slr films.sli requests.csv -n 10\n");
    return report_stdout();
}

static int print_help(int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "--help") == 0) return print_overview();
    const command *command = find_command(argv[1]);
    if (!command) return report_usage("unknown command '%s'", argv[1]);
    options_help(command);
    return report_stdout();
}

/* Opens a substitute for each closed standard stream. Otherwise the next opened file would get the printed text. The
 * substitute fails like a closed stream. */
static int keep_streams(void) {
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd) return 0;
    return 1;
}

int main(int argc, char **argv) {
    if (!keep_streams()) return EXIT_FAILED;
    interrupt_install();
    int status = report_log_install();
    if (status != EXIT_DONE) return status;
    if (argc < 2) return report_usage("a command is missing");
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) return print_overview();
    if (strcmp(name, "help") == 0) return print_help(argc - 1, argv + 1);
    if (strcmp(name, "--version") == 0) {
        printf("shortlist %s\n", sl_version());
        return report_stdout();
    }
    const command *command = find_command(name);
    if (!command) return report_usage("unknown command '%s'", name);
    report_command(command->name);
    shortened_install(command->name);
    return end_as_asked(command->run(command, argc - 1, argv + 1));
}
