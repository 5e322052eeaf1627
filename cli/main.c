/* The shortlist command. */
#include "cli/common/ending.h"
#include "cli/common/interrupt.h"
#include "cli/common/program.h"
#include "cli/common/report.h"
#include "cli/files/commands.h"
#include "cli/index/commands.h"
#include "cli/inspect/commands.h"
#include "cli/ranker/commands.h"
#include "cli/recommend/commands.h"
#include "cli/search/commands.h"

#include <fcntl.h>

static const command *const commands[] = {
    &command_build,    &command_import,  &command_add,       &command_delete,   &command_compact,
    &command_merge,    &command_rebuild, &command_search,    &command_eval,     &command_tune,
    &command_truth,    &command_info,    &command_check,     &command_recall,   &command_snapshot,
    &command_convert,  &command_train,   &command_prune,     &command_quantize, &command_predict,
    &command_evaluate, &command_items,   &command_recommend, &command_cpu,      NULL,
};

static const page_entry entries[] = {
    {"ENVIRONMENT", "SHORTLIST_MAX_ISA",
     "Highest instruction-set tier to use: scalar, avx2, avxvnni, avx512bw, avx512vnni, amxint8 or neon; any other "
     "word means scalar.\n"},
    {NULL, "SHORTLIST_LOG", "Print the library's messages on stderr: error, warn, info or debug.\n"},
    {NULL, "OMP_NUM_THREADS, OMP_PROC_BIND, OMP_PLACES", "How many threads work by default, and on which CPUs.\n"},
    {"FILES", NULL,
     "Indexes and item tables are mapped, not read. Put another file in the place of one by renaming, as every "
     "command here does, and never by writing into it: a command whose file becomes shorter ends with exit status "
     "1. Where nobody can promise that, --place dram reads a copy, and tells damage.\n"},
    {"EXIT STATUS", NULL,
     "0 done; 1 failed, with one line on stderr that says what, where and what to do; 2 the command line "
     "was not understood. Interrupted by Ctrl-C, a command puts its files in order and ends by SIGINT, which a "
     "shell sees as 130.\n"},
    {NULL, NULL, NULL},
};

static const program shortlist = {
    .name = "shortlist",
    .summary = "find the nearest vectors, and rank them",
    .synopsis = "       shortlist COMMAND ...\n       shortlist COMMAND --help\n       shortlist --version\n",
    .description =
        "Builds an index over a file of vectors, searches it, and measures how well and how fast. Trains a model that "
        "ranks what was found, and recommends with both.\n",
    .commands = commands,
    .entries = entries,
    .examples = "       shortlist build base.fbin -o base.sl --metric cosine\n"
                "       shortlist truth base.fbin queries.fbin -k 10 --metric cosine -o truth.ibin\n"
                "       shortlist eval base.sl queries.fbin truth.ibin -k 10\n"
                "       shortlist search base.sl queries.fbin -k 10 --ef 100 -o found.ibin\n"
                "       shortlist train spec.json clicks.csv -o model.slr\n"
                "       shortlist items films.csv -o films.sli --id film\n"
                "       shortlist recommend base.sl model.slr films.sli requests.csv -n 10\n",
};

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
    return end_as_asked(program_run(&shortlist, argc, argv));
}
