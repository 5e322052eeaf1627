/* OpenMP behind a few functions, so that the library also builds, single-threaded, without it. */
#ifndef SL_BASE_THREAD_H
#define SL_BASE_THREAD_H

#include <shortlist.h>

/* Threads a batch call uses: asked, up to sl_thread_most(), or OpenMP's own number where asked is 0; at least 1.
 * In a child of a process that has had more than one, 1. */
size_t sl_thread_count(size_t asked);
/* OpenMP's own number. */
size_t sl_thread_limit(void);
/* As many as a call uses at the most: SL_MAX_THREADS, or fewer where OMP_THREAD_LIMIT says so. */
size_t sl_thread_most(void);
/* Number of the calling thread inside a parallel region, from 0. */
size_t sl_thread_number(void);

/* Progress of a batch call, counted by all threads, told by the calling one. Where nobody wants to know, NULL. */
typedef struct sl_progress {
    sl_progress_fn tell;
    void *ctx;
    const void *caller; /* the calling thread, by the address of something of its own */
    uint64_t total;
    uint64_t done;     /* atomic */
    int cancelled;     /* atomic */
    int64_t last_told; /* ns; the calling thread's own */
} sl_progress;

void sl_progress_start(sl_progress *progress, sl_progress_fn tell, void *ctx, uint64_t total);
/* Counts `more` as done; on the thread that started it tells the callback, at most some ten times a second. */
void sl_progress_step(sl_progress *progress, uint64_t more);
/* True once the callback asked to stop: work not begun is then skipped. */
int sl_progress_cancelled(const sl_progress *progress);
/* Tells the callback the end; SL_ECANCELED where it was asked to stop. */
sl_status sl_progress_end(sl_progress *progress);

/* One bit-lock a node from a striped table: adds of several threads hold at most one at a time. */
typedef struct sl_spin {
    int held; /* atomic */
} sl_spin;
void sl_spin_lock(sl_spin *lock);
void sl_spin_unlock(sl_spin *lock);

#endif
