/* OpenMP behind a few functions. The library also builds without OpenMP, for one thread. */
#ifndef SL_BASE_THREAD_H
#define SL_BASE_THREAD_H

#include <shortlist.h>

/* Returns the threads of a batch call: `asked`, up to sl_thread_most(), or OpenMP's default if `asked` is 0; at least
 * 1. A forked child of a process that has had more than one thread gets 1. */
size_t sl_thread_count(size_t asked);
/* Returns OpenMP's default number of threads. */
size_t sl_thread_limit(void);
/* Returns the most threads that a call uses: SL_MAX_THREADS, or fewer if OMP_THREAD_LIMIT says so. */
size_t sl_thread_most(void);
/* Returns the number of the calling thread in a parallel region, from 0. */
size_t sl_thread_number(void);

/* Returns the calling thread: its process id in the upper 32 bits, its thread id in the lower ones. A thread's first
 * call asks the system. In a forked child the ids are the child's. */
uint64_t sl_thread_self(void);

/* Progress of a batch call. All threads count; the calling thread reports. A NULL callback reports nothing. */
typedef struct sl_progress {
    sl_progress_fn report;
    void *ctx;
    const void *caller; /* the calling thread, identified by the address of a variable of its own */
    uint64_t total;
    uint64_t done;       /* atomic */
    int cancelled;       /* atomic */
    int64_t last_report; /* ns; written by the calling thread alone */
} sl_progress;

void sl_progress_start(sl_progress *progress, sl_progress_fn report, void *ctx, uint64_t total);
/* Adds `more` to the work done. The calling thread also reports to the callback, at most some ten times a second. */
void sl_progress_step(sl_progress *progress, uint64_t more);
/* Returns whether the callback has asked to stop. Callers then skip work that has not begun. */
int sl_progress_cancelled(const sl_progress *progress);
/* Reports the end to the callback. Errors: SL_ECANCELED if the callback asked to stop. */
sl_status sl_progress_end(sl_progress *progress);

/* A spin lock. Nodes share a table of them, and a thread that adds holds at most one of these. */
typedef struct sl_spin {
    int held; /* atomic */
} sl_spin;
void sl_spin_lock(sl_spin *lock);
void sl_spin_unlock(sl_spin *lock);
/* Locks data that forked children use too. A child takes the lock over from a thread of its parent, since that thread
 * isn't there to unlock it. The data must therefore be sound at every moment. Unlock by sl_spin_unlock. Never lock such
 * a lock by sl_spin_lock. */
void sl_spin_lock_owned(sl_spin *lock);

#endif
