#define _GNU_SOURCE
#include "base/thread.h"

#include "base/clock.h"
#include "base/status.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#ifdef _OPENMP
/* The process that has had a team of OpenMP's threads, or 0. Its forked children work alone: they don't get the
 * threads, and GNU OpenMP would wait for these for ever. */
static pid_t team_owner;

static int may_have_team(void) {
    pid_t self = getpid(), none = 0;
    if (__atomic_compare_exchange_n(&team_owner, &none, self, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return 1;
    return none == self;
}
#endif

size_t sl_thread_count(size_t asked) {
#ifdef _OPENMP
    size_t count = asked ? asked : sl_thread_limit(), most = sl_thread_most();
    if (count > most) count = most;
    return count > 1 && may_have_team() ? count : 1;
#else
    (void)asked;
    return 1;
#endif
}

size_t sl_thread_limit(void) {
#ifdef _OPENMP
    int count = omp_get_max_threads();
    return count > 0 ? (size_t)count : 1;
#else
    return 1;
#endif
}

/* OpenMP ends the process if it can't start threads. So no call asks for more than a machine has use for. */
size_t sl_thread_most(void) {
#ifdef _OPENMP
    int limit = omp_get_thread_limit(); /* OMP_THREAD_LIMIT */
    return limit > 0 && (unsigned)limit < SL_MAX_THREADS ? (size_t)limit : SL_MAX_THREADS;
#else
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

static _Thread_local uint64_t thread_self; /* 0: not known yet */

static void forget_self(void) {
    thread_self = 0;
}

static void watch_forks(void) {
    (void)pthread_atfork(NULL, NULL, forget_self);
}

uint64_t sl_thread_self(void) {
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    if (thread_self) return thread_self;
    (void)pthread_once(&watched, watch_forks);
    return thread_self = (uint64_t)getpid() << 32 | (uint32_t)syscall(SYS_gettid);
}

/* Its address tells threads apart, in any parallel region. */
static _Thread_local char thread_mark;

void sl_progress_start(sl_progress *progress, sl_progress_fn report, void *ctx, uint64_t total) {
    *progress = (sl_progress){.report = report, .ctx = ctx, .caller = &thread_mark, .total = total};
}

void sl_progress_step(sl_progress *progress, uint64_t more) {
    if (!progress || !progress->report) return;
    uint64_t done = __atomic_add_fetch(&progress->done, more, __ATOMIC_RELAXED);
    if (progress->caller != &thread_mark) return;
    int64_t now = sl_now_ns();
    if (now - progress->last_report < 100000000) return;
    progress->last_report = now;
    if (progress->report(progress->ctx, done, progress->total))
        __atomic_store_n(&progress->cancelled, 1, __ATOMIC_RELAXED);
}

int sl_progress_cancelled(const sl_progress *progress) {
    return progress && __atomic_load_n(&progress->cancelled, __ATOMIC_RELAXED);
}

sl_status sl_progress_end(sl_progress *progress) {
    if (!progress) return SL_OK;
    if (!sl_progress_cancelled(progress) && progress->report &&
        progress->report(progress->ctx, progress->total, progress->total))
        progress->cancelled = 1;
    if (progress->cancelled) return sl_fail(SL_ECANCELED, "cancelled by the progress callback");
    return SL_OK;
}

void sl_spin_lock(sl_spin *lock) {
    for (unsigned tries = 0; __atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE); tries++)
        /* With more threads than cores, the holder may have lost its core: let it run. */
        while (__atomic_load_n(&lock->held, __ATOMIC_RELAXED))
            if (++tries > 64) sched_yield();
}

void sl_spin_lock_owned(sl_spin *lock) {
    const int self = (int)getpid();
    int holder = 0;
    for (unsigned tries = 0;
         !__atomic_compare_exchange_n(&lock->held, &holder, self, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED); tries++) {
        if (holder == self) holder = 0; /* another thread of this process: wait until it unlocks */
        if (tries > 64) sched_yield();
    }
}

void sl_spin_unlock(sl_spin *lock) {
    __atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}
