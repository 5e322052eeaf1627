/* Time: one clock that only goes forward, and pauses. */
#ifndef SL_BASE_CLOCK_H
#define SL_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds. */
int64_t sl_now_ns(void);
/* Seconds. */
double sl_now_s(void);
/* Whole seconds, up to a tick of the kernel late. Costs a few nanoseconds, so that every search may ask. */
uint64_t sl_now_coarse(void);
/* Sleeps so many nanoseconds, below a second; a signal ends the pause early. */
void sl_pause_ns(long nanoseconds);

#endif
