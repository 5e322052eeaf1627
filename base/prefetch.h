#ifndef SL_BASE_PREFETCH_H
#define SL_BASE_PREFETCH_H

#include <stddef.h>

#define SL_PREFETCH_LINE 64u

/*
 * Prefetches every cache line of `bytes` bytes from `at`, which begins a line.
 *
 * On x86 the lines go into the second-level cache. A core fetches some two dozen lines into its
 * first-level cache at a time. Every other miss there waits for these lines, even if its data is near. That cost
 * searches a fifth to a third of their time.
 *
 * Assembly, because GCC 12 thinks that a function of nothing but __builtin_prefetch has no effect, and removes its
 * calls. That cost searches up to a quarter of their speed.
 */
static inline void sl_prefetch(const void *at, size_t bytes) {
    const char *line = at;
    for (size_t byte = 0; byte < bytes; byte += SL_PREFETCH_LINE) {
#if defined(__x86_64__)
        __asm__ volatile("prefetcht1 %0" : : "m"(line[byte]));
#elif defined(__aarch64__)
        __asm__ volatile("prfm pldl1keep, %0" : : "Q"(line[byte]));
#else
        __builtin_prefetch(line + byte);
#endif
    }
}

#endif
