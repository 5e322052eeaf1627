/* The rows of a base that cannot be mapped as they lie: all of them, in memory or in a file without a name. */
#ifndef CLI_UNPACKED_H
#define CLI_UNPACKED_H

#include "cli/vectors.h"

typedef struct unpacked {
    void *rows; /* dense, of one type; NULL: none */
    size_t bytes;
    int is_file;
} unpacked;

/* Reads all rows into memory. Returns an exit status. */
int unpacked_read(unpacked *out, vectors *base, element type);

/* Writes all rows to a file beside `output`, and maps it. The system can write its pages out. A killed process leaves
 * no file. `at_once`: bytes of rows in memory meanwhile; where the type differs, 8 MB more. Returns an exit status. */
int unpacked_write(unpacked *out, vectors *base, element type, const char *output, size_t at_once, int progress);

void unpacked_free(unpacked *unpacked);

#endif
