/* Asking for memory before it is needed. */
#ifndef SL_BASE_PREFETCH_H
#define SL_BASE_PREFETCH_H

#include <stddef.h>

#define SL_PREFETCH_LINE 64u

/* Every cache line of `bytes` bytes from `at`, which begins a line, on its way. Into the second-level cache on x86: a
 * core of an AMD EPYC (Zen 4) waits for some two dozen lines on their way into the first at a time, for which
 * everything else that is not there, but near, then waits in turn; that cost searches a fifth to a third of their time.
 * In assembly: GCC 12 takes a function that does nothing but __builtin_prefetch for one without effect and removes its
 * calls, which here cost a search up to a quarter of its speed. */
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
