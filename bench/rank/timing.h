/* Times of calls, and what they come to. */
#ifndef BENCH_RANK_TIMING_H
#define BENCH_RANK_TIMING_H

#include <stddef.h>
#include <stdint.h>

int64_t now_ns(void);
/* The processor's time of all threads of this process. */
int64_t processor_ns(void);
/* Sorts, and gives the value at a share of them: 0.5 is the median. */
double percentile(int64_t *times, size_t count, double share);
/* The calling thread on one core, the last one it may run on, and all that OpenMP does on that thread. */
void pin(void);

#endif
