/* Sizes for people. */
#ifndef CLI_COMMON_SIZE_TEXT_H
#define CLI_COMMON_SIZE_TEXT_H

#include <stdint.h>

/* "4294967296 bytes" as "4.0 GiB". */
typedef struct size_text {
    char text[24];
} size_text;
size_text text_of_size(uint64_t bytes);

#endif
