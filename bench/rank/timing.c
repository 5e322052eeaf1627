#define _GNU_SOURCE
#include "timing.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t processor_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int by_time(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

double percentile(int64_t *times, size_t count, double share) {
    qsort(times, count, sizeof *times, by_time);
    return (double)times[(size_t)(share * (double)(count - 1))];
}

void pin(void) {
    cpu_set_t allowed, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    for (size_t cpu = CPU_SETSIZE; cpu-- > 0;) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        CPU_SET(cpu, &one);
        (void)sched_setaffinity(0, sizeof one, &one);
        return;
    }
}
