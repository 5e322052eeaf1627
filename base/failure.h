/* A failure of one of several threads, kept until the thread that called makes it its own: sl_last_error is each
 * thread's own. */
#ifndef SL_BASE_FAILURE_H
#define SL_BASE_FAILURE_H

#include "base/status.h"
#include "base/thread.h"

#include <stdint.h>

typedef struct sl_failure {
    sl_status status; /* SL_OK: nothing has failed */
    size_t at;        /* number of the row, query or the like that failed; SIZE_MAX while nothing has */
    char message[SL_ERROR_SIZE];
    sl_spin lock;
} sl_failure;

void sl_failure_init(sl_failure *failure);

/* Keeps what failed on this thread at number `at`, with this thread's message, unless a lower number is kept. Nothing
 * happens for SL_OK. Threads: any, beside one another. */
void sl_failure_keep(sl_failure *failure, size_t at, sl_status status);

/* Tells whether something below or at this number has failed: then no failure at a higher number is kept. Threads: any.
 */
static inline int sl_failure_before(const sl_failure *failure, size_t at) {
    return __atomic_load_n(&failure->at, __ATOMIC_RELAXED) <= at;
}

/* Makes the kept message the calling thread's own; returns the kept status, SL_OK where nothing has failed. The threads
 * have ended. */
sl_status sl_failure_pass(const sl_failure *failure);

#endif
