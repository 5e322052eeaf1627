#define _POSIX_C_SOURCE 200809L
#include "base/crew.h"

#include "base/thread.h"

#include <signal.h>

/* More threads wouldn't help: the memory of any machine is busy with these. */
enum { MOST_THREADS = 64 };

typedef struct sl_crew {
    void (*work)(void *ctx, size_t from, size_t to);
    void *ctx;
    size_t count, grain;
    size_t next; /* atomic: the first number that no thread has taken */
} sl_crew;

int sl_crew_start(pthread_t *thread, void *(*run)(void *), void *ctx) {
    sigset_t others, before;
    sigfillset(&others);
    sigdelset(&others, SIGBUS);
    sigdelset(&others, SIGSEGV);
    sigdelset(&others, SIGFPE);
    sigdelset(&others, SIGILL);
    pthread_sigmask(SIG_BLOCK, &others, &before);
    int error = pthread_create(thread, NULL, run, ctx);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static void *work_ranges(void *ctx) {
    sl_crew *crew = ctx;
    for (;;) {
        size_t from = __atomic_fetch_add(&crew->next, crew->grain, __ATOMIC_RELAXED);
        if (from >= crew->count) return NULL;
        crew->work(crew->ctx, from, crew->count - from < crew->grain ? crew->count : from + crew->grain);
    }
}

void sl_crew_run(size_t threads, size_t count, size_t grain, void (*work)(void *ctx, size_t from, size_t to),
                 void *ctx) {
    sl_crew crew = {.work = work, .ctx = ctx, .count = count, .grain = grain};
    pthread_t others[MOST_THREADS];
    size_t ranges = count / grain + (count % grain != 0), started = 0;
    if (!threads) threads = sl_thread_limit();
    if (threads > ranges) threads = ranges;
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    while (started + 1 < threads && sl_crew_start(&others[started], work_ranges, &crew) == 0)
        started++;
    (void)work_ranges(&crew);
    while (started)
        pthread_join(others[--started], NULL);
}

void sl_atomic_min(size_t *least, size_t value) {
    size_t before = __atomic_load_n(least, __ATOMIC_RELAXED);
    while (value < before && !__atomic_compare_exchange_n(least, &before, value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}
