/* UTF-8, as JSON and Prometheus want it. */
#ifndef CLI_COMMON_UTF8_H
#define CLI_COMMON_UTF8_H

#include <stddef.h>

/* Returns the length of the UTF-8 sequence at `s`, which a NUL ends; 0: it is not UTF-8. */
size_t utf8_length(const unsigned char *s);

#endif
