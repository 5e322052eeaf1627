#define _POSIX_C_SOURCE 200809L
#include "tests/cluster/ranks_main.h"

#include <stdio.h>
#include <stdlib.h>

sl_comm all_ranks;

void rank_fail(const char *file, int line, const char *expression) {
    fprintf(stderr, "rank %zu of %zu: %s:%d: '%s' failed; last message: %s\n", all_ranks.rank, all_ranks.ranks, file,
            line, expression, sl_last_error());
    sl_comm_abort(&all_ranks, 1);
}

int ranks_main(int argc, char **argv, const char *name, TCase *const *cases, size_t count) {
    setenv("CK_FORK", "no", 1);
    if (sl_comm_start(&argc, &argv, &all_ranks) != SL_OK) {
        fprintf(stderr, "%s\n", sl_last_error());
        return EXIT_FAILURE;
    }
    int failed = check_main(name, cases, count);
    sl_comm_end(&all_ranks);
    return failed;
}
