/* Threads for the time of one call, OpenMP's being no good for it: a process that has had a team of those cannot have
 * one in the children that it forks later, and opening an index is what comes before forking. */
#ifndef SL_BASE_CREW_H
#define SL_BASE_CREW_H

#include <pthread.h>
#include <stddef.h>

/* A thread of the library's own. Signals are for the program's own threads; but those that a failing read of a mapping
 * raises come to the thread that read. 0, or an error of errno.h. */
int sl_crew_start(pthread_t *thread, void *(*run)(void *), void *ctx);

/* Calls work for [0, count) in ranges of up to `grain`, on the calling thread and up to threads - 1 others, 0 for as
 * many as OpenMP would give: on fewer where there is too little work, or where the system gives no more. Returns when
 * all is done. */
void sl_crew_run(size_t threads, size_t count, size_t grain, void (*work)(void *ctx, size_t from, size_t to),
                 void *ctx);

/* Makes *least the lesser of the two, while others do the same. */
void sl_keep_least(size_t *least, size_t value);

#endif
