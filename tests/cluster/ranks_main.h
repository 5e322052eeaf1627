/* The main of Check tests that all ranks of a job run. The tests run in one process per rank, without forks. */
#ifndef SL_TESTS_CLUSTER_RANKS_MAIN_H
#define SL_TESTS_CLUSTER_RANKS_MAIN_H

#include "cluster/comm/comm.h"
#include "tests/support/check_main.h"

/* All ranks of the job. */
extern sl_comm all_ranks;

/* Checks like ck_assert, and ends all ranks on failure: the others would wait for this one. */
#define rank_assert(expression)                                                                                        \
    do {                                                                                                               \
        int rank_assert_ = (expression) ? 1 : 0;                                                                       \
        if (!rank_assert_) rank_fail(__FILE__, __LINE__, #expression);                                                 \
        ck_assert(rank_assert_);                                                                                       \
    } while (0)
#define rank_assert_ok(call) rank_assert((call) == SL_OK)

void rank_fail(const char *file, int line, const char *expression);

/* Starts the ranks, runs the cases on all of them as check_main does, and returns the process's exit status. */
int ranks_main(int argc, char **argv, const char *name, TCase *const *cases, size_t count);

#endif
