#include "base/id_hash.h"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* 0: not drawn yet */
static uint64_t drawn;

/* Replaces random bits while the system has none yet: mixes the time, the process number and an address. */
static uint64_t guessed_bits(void) {
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t time = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return sl_random_at(sl_random_at(time, (uint64_t)getpid()), (uint64_t)(uintptr_t)&now);
}

uint64_t sl_id_seed(void) {
    uint64_t seed = __atomic_load_n(&drawn, __ATOMIC_RELAXED), none = 0;
    if (seed) return seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed) seed = guessed_bits();
    if (!seed) seed = 1;
    /* All threads use the seed that one of them stored first. */
    return __atomic_compare_exchange_n(&drawn, &none, seed, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ? seed : none;
}
