#include "cli/common/clock.h"

#include <time.h>

int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double now_seconds(void) {
    return (double)now_ns() * 1e-9;
}
