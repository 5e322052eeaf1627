#include "tests/support/lock_calls.h"

#include "base/thread.h"

#include <pthread.h>
#include <semaphore.h>

static size_t calls; /* atomic */

size_t lock_calls(void) {
    return __atomic_load_n(&calls, __ATOMIC_RELAXED);
}

static void count(void) {
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
}

/* Functions of one argument. The one that was meant is weak: a program that never calls it may not have it. */
#define COUNT_CALLS(function, result, argument_type, give)                                                             \
    result __real_##function(argument_type argument) __attribute__((weak));                                            \
    result __wrap_##function(argument_type argument);                                                                  \
    result __wrap_##function(argument_type argument) {                                                                 \
        count();                                                                                                       \
        give __real_##function(argument);                                                                              \
    }

COUNT_CALLS(pthread_mutex_lock, int, pthread_mutex_t *, return )
COUNT_CALLS(pthread_mutex_trylock, int, pthread_mutex_t *, return )
COUNT_CALLS(pthread_mutex_unlock, int, pthread_mutex_t *, return )
COUNT_CALLS(pthread_rwlock_rdlock, int, pthread_rwlock_t *, return )
COUNT_CALLS(pthread_rwlock_wrlock, int, pthread_rwlock_t *, return )
COUNT_CALLS(pthread_rwlock_unlock, int, pthread_rwlock_t *, return )
COUNT_CALLS(pthread_spin_lock, int, pthread_spinlock_t *, return )
COUNT_CALLS(pthread_cond_signal, int, pthread_cond_t *, return )
COUNT_CALLS(pthread_cond_broadcast, int, pthread_cond_t *, return )
COUNT_CALLS(sem_wait, int, sem_t *, return )
COUNT_CALLS(sem_trywait, int, sem_t *, return )
COUNT_CALLS(sem_post, int, sem_t *, return )
COUNT_CALLS(sl_spin_lock, void, sl_spin *, )
COUNT_CALLS(omp_set_lock, void, void *, )
COUNT_CALLS(GOMP_critical_name_start, void, void **, )

void __real_GOMP_critical_start(void) __attribute__((weak));
void __wrap_GOMP_critical_start(void);
void __wrap_GOMP_critical_start(void) {
    count();
    __real_GOMP_critical_start();
}

/* LLVM's: where in the source, which thread, which lock. */
void __real___kmpc_critical(void *where, int thread, void *lock) __attribute__((weak));
void __wrap___kmpc_critical(void *where, int thread, void *lock);
void __wrap___kmpc_critical(void *where, int thread, void *lock) {
    count();
    __real___kmpc_critical(where, thread, lock);
}
