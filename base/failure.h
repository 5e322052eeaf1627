/* Keeps a worker thread's failure for the calling thread, because each thread has its own sl_last_error. */
#ifndef SL_BASE_FAILURE_H
#define SL_BASE_FAILURE_H

#include "base/status.h"
#include "base/thread.h"

#include <stdint.h>

typedef struct sl_failure {
    sl_status status; /* SL_OK: nothing has failed */
    size_t at;        /* number of the failed row, query or the like; SIZE_MAX: none */
    char message[SL_ERROR_SIZE];
    sl_spin lock;
} sl_failure;

void sl_failure_init(sl_failure *failure);

/* Keeps this thread's failure at number `at` with its message, unless a failure at a lower number is kept. SL_OK does
 * nothing.
 * Threads: any, at the same time. */
void sl_failure_keep(sl_failure *failure, size_t at, sl_status status);

/* Returns whether a failure at this number or a lower one is kept. Failures at higher numbers are then dropped.
 * Threads: any. */
static inline int sl_failure_before(const sl_failure *failure, size_t at) {
    return __atomic_load_n(&failure->at, __ATOMIC_RELAXED) <= at;
}

/* Copies the kept message to the calling thread's sl_last_error. Returns the kept status, or SL_OK. Call it once the
 * threads have ended. */
sl_status sl_failure_pass(const sl_failure *failure);

#endif
