#define _GNU_SOURCE
#include "base/clock.h"

#include <time.h>

int64_t sl_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

double sl_now_s(void) {
    return (double)sl_now_ns() * 1e-9;
}

uint64_t sl_now_coarse(void) {
#ifdef CLOCK_MONOTONIC_COARSE
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now) == 0) return (uint64_t)now.tv_sec;
#endif
    return (uint64_t)(sl_now_ns() / 1000000000);
}

void sl_pause_ns(long nanoseconds) {
    (void)nanosleep(&(struct timespec){0, nanoseconds}, NULL);
}
