/* Time: one clock that only goes forward, and pauses. */
#ifndef SL_BASE_CLOCK_H
#define SL_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds. */
int64_t sl_now_ns(void);
/* Seconds. */
double sl_now_s(void);
/* Whole seconds, late by up to one kernel tick. A call costs a few nanoseconds, so every search can afford it. */
uint64_t sl_now_coarse(void);
/* Sleeps for less than a second. A signal ends the pause early. */
void sl_pause_ns(long nanoseconds);

#endif
