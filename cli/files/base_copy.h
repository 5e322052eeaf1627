/* A copy of a base that cannot be mapped: all rows, in memory or in a file without a name. */
#ifndef CLI_FILES_BASE_COPY_H
#define CLI_FILES_BASE_COPY_H

#include "cli/files/vectors.h"

typedef struct base_copy {
    void *rows; /* dense, of one type; NULL: none */
    size_t bytes;
    int is_file;
} base_copy;

/* Reads all rows into memory. Returns an exit status. */
int base_copy_read(base_copy *out, vectors *base, element type);

/* Writes all rows to a file without a name beside `output`, and maps it. The system can write its pages out, and a
 * killed process leaves no file. `at_once`: bytes of rows in memory while copying; 8 MB more if the type differs.
 * Returns an exit status. */
int base_copy_write(base_copy *out, vectors *base, element type, const char *output, size_t at_once, int progress);

void base_copy_free(base_copy *copy);

#endif
