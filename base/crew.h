/* Threads for the time of one call. OpenMP's threads would not do: a process that has had a team of them cannot have
 * one in the children that it forks later. An index is opened before a service forks. */
#ifndef SL_BASE_CREW_H
#define SL_BASE_CREW_H

#include <pthread.h>
#include <stddef.h>

/* Starts a thread of the library's own. Signals are left to the program's own threads, except those that a failing read
 * of a mapping raises: they come to the thread that read. Returns 0 or an error of errno.h. */
int sl_crew_start(pthread_t *thread, void *(*run)(void *), void *ctx);

/*
 * Calls `work` for [0, count) in ranges of up to `grain`. Returns when all ranges are done.
 *
 * Parameters: `threads`, the calling thread included; 0 for as many as OpenMP would give. Fewer run if there is too
 * little work or if the system gives no more.
 */
void sl_crew_run(size_t threads, size_t count, size_t grain, void (*work)(void *ctx, size_t from, size_t to),
                 void *ctx);

/* Makes *least the lesser of *least and `value`, while other threads do the same. */
void sl_atomic_min(size_t *least, size_t value);

#endif
