/* A monotonic clock. */
#ifndef CLI_COMMON_CLOCK_H
#define CLI_COMMON_CLOCK_H

#include <stdint.h>

/* Seconds or nanoseconds of a monotonic clock. */
int64_t now_ns(void);
double now_seconds(void);

#endif
