#include "cluster/commands/ranks.h"

#include "base/crc32c.h"
#include "cli/common/report.h"

#include <stdio.h>
#include <string.h>

static sl_comm world;
static char message[2 * SL_ERROR_SIZE];

const sl_comm *ranks(void) {
    return &world;
}

/* A failure of one rank, as the ranks hand it on. */
typedef struct ending {
    int32_t status;
    char host[128], message[SL_ERROR_SIZE];
} ending;

int ranks_agree(int status) {
    ending mine = {.status = status};
    uint64_t first = status == EXIT_DONE ? world.ranks : world.rank;
    if (world.ranks == 1 || sl_comm_is_broken(&world)) return status;
    if (sl_comm_min(&world, &first) != SL_OK) return ranks_report(SL_EIO);
    if (first == world.ranks) return EXIT_DONE;
    snprintf(mine.host, sizeof mine.host, "%s", sl_comm_host(&world));
    snprintf(mine.message, sizeof mine.message, "%.*s", (int)sizeof mine.message - 1, message);
    if (sl_comm_broadcast(&world, &mine, sizeof mine, first) != SL_OK) return ranks_report(SL_EIO);
    /* A message of cluster/ names its rank, and all ranks report the same line about the command. */
    if (mine.status == EXIT_USAGE || strncmp(mine.message, "rank ", 5) == 0)
        snprintf(message, sizeof message, "%s", mine.message);
    else
        snprintf(message, sizeof message, "rank %zu (%s): %s", (size_t)first, mine.host, mine.message);
    return mine.status;
}

int ranks_check_same(const char *what, const void *data, size_t size) {
    const uint32_t mine = sl_crc32c(0, data, size);
    uint32_t first = mine;
    int status = EXIT_DONE;
    if (sl_comm_broadcast(&world, &first, sizeof first, 0) != SL_OK) return ranks_report(SL_EIO);
    if (mine != first) status = report_failure("its %s is not that of rank 0; give all ranks the same", what);
    return ranks_agree(status);
}

int ranks_report(sl_status status) {
    return report_status(NULL, status);
}

const char *ranks_message(void) {
    return message;
}

sl_status ranks_start(int *argc, char ***argv) {
    SL_TRY(sl_comm_start(argc, argv, &world));
    report_keep(message, sizeof message);
    return SL_OK;
}

void ranks_print_failure(int status) {
    const int broken = sl_comm_is_broken(&world);
    report_keep(NULL, 0);
    if (status != EXIT_DONE && (world.rank == 0 || broken)) (void)report_failure("%s", message);
    if (broken) sl_comm_abort(&world, EXIT_FAILED);
}

void ranks_end(void) {
    sl_comm_end(&world);
}
