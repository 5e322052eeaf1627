/* Threads that live for one call. OpenMP's won't do: once a process has had a team of them, its forked children can't
 * have one, and services open an index before they fork. */
#ifndef SL_BASE_CREW_H
#define SL_BASE_CREW_H

#include <pthread.h>
#include <stddef.h>

/* Starts a thread of the library. It leaves signals to the program's threads, except those that a failing read of a
 * mapping raises in the thread that reads. Returns 0 or an error number of errno.h. */
int sl_crew_start(pthread_t *thread, void *(*run)(void *), void *ctx);

/*
 * Calls `work` for [0, count) in ranges of up to `grain`. Returns when all ranges are done.
 *
 * Parameters: `threads` includes the calling thread; 0 means as many as OpenMP would use. Fewer run if there's too
 * little work or the system starts no more.
 */
void sl_crew_run(size_t threads, size_t count, size_t grain, void (*work)(void *ctx, size_t from, size_t to),
                 void *ctx);

/* Atomically sets *least to the smaller of *least and `value`. */
void sl_atomic_min(size_t *least, size_t value);

#endif
