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

int ranks_agree(int status) {
    /* All ranks have the same command line, and refuse it alike. */
    if (world.ranks == 1 || status == EXIT_USAGE) return status;
    sl_status agreed = sl_comm_agree(&world, status == EXIT_DONE ? SL_OK : sl_fail(SL_EIO, "%.500s", message));
    if (agreed == SL_OK) return EXIT_DONE;
    snprintf(message, sizeof message, "%s", sl_last_error());
    return EXIT_FAILED;
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
    report_keep(message, sizeof message, world.rank == 0);
    return SL_OK;
}

int ranks_report_start(sl_status status) {
    if (world.rank == 0) (void)report_status(NULL, status);
    if (world.job) sl_comm_end(&world);
    return EXIT_FAILED;
}

void ranks_print_failure(int status) {
    const int broken = sl_comm_is_broken(&world);
    report_keep(NULL, 0, 1);
    if (status != EXIT_DONE && (world.rank == 0 || broken)) (void)report_failure("%s", message);
    if (broken) sl_comm_abort(&world, EXIT_FAILED);
}

void ranks_end(void) {
    sl_comm_end(&world);
}
