#define _GNU_SOURCE
#include "base/thread.h"

#include "base/status.h"

#include <sched.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif

/* More than a machine has a use for. Where threads cannot be made, OpenMP's runtimes end the process. */
#define MOST_THREADS 1024u

size_t sl_thread_count(size_t asked) {
#ifdef _OPENMP
    if (asked) return asked < MOST_THREADS ? asked : MOST_THREADS;
    int count = omp_get_max_threads();
    return count > 0 ? (size_t)count : 1;
#else
    (void)asked;
    return 1;
#endif
}

size_t sl_thread_number(void) {
#ifdef _OPENMP
    return (size_t)omp_get_thread_num();
#else
    return 0;
#endif
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void sl_progress_start(sl_progress *progress, sl_progress_fn tell, void *ctx, uint64_t total) {
    *progress = (sl_progress){.tell = tell, .ctx = ctx, .total = total};
}

void sl_progress_step(sl_progress *progress, uint64_t more) {
    if (!progress || !progress->tell) return;
    uint64_t done = __atomic_add_fetch(&progress->done, more, __ATOMIC_RELAXED);
    if (sl_thread_number() != 0) return;
    int64_t now = now_ns();
    if (now - progress->last_told < 100000000) return;
    progress->last_told = now;
    if (progress->tell(progress->ctx, done, progress->total))
        __atomic_store_n(&progress->cancelled, 1, __ATOMIC_RELAXED);
}

int sl_progress_cancelled(const sl_progress *progress) {
    return progress && __atomic_load_n(&progress->cancelled, __ATOMIC_RELAXED);
}

sl_status sl_progress_end(sl_progress *progress) {
    if (!progress) return SL_OK;
    if (!sl_progress_cancelled(progress) && progress->tell &&
        progress->tell(progress->ctx, progress->total, progress->total))
        progress->cancelled = 1;
    if (progress->cancelled) return sl_fail(SL_ECANCELED, "cancelled by the progress callback");
    return SL_OK;
}

void sl_spin_lock(sl_spin *lock) {
    for (unsigned tries = 0; __atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE); tries++)
        /* A holder that lost its core, as happens with more threads than cores, must be let run. */
        while (__atomic_load_n(&lock->held, __ATOMIC_RELAXED))
            if (++tries > 64) sched_yield();
}

void sl_spin_unlock(sl_spin *lock) {
    __atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}
