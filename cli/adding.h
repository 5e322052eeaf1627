/* Vectors of a file into an index, block by block. */
#ifndef CLI_ADDING_H
#define CLI_ADDING_H

#include "cli/vectors.h"

#include <shortlist.h>

typedef struct adding {
    sl_index *index;
    vectors *base;
    element type;        /* in which the base is read */
    const uint64_t *ids; /* one a row, or NULL */
    size_t threads;
    int progress; /* --progress */
    /* Reports that the rows from `first` on were refused; returns an exit status. */
    int (*refused)(void *ctx, size_t first, sl_status status);
    void *refused_ctx;
    void *block; /* to be freed */
    size_t block_rows;
    double read_s, add_s; /* what it took */
} adding;

/* Makes the block that the base is read by, of `most` bytes at most, or 0 for the usual size; *bytes, which may be
 * NULL, is how large it is. Returns an exit status. */
int adding_prepare(adding *adding, size_t most, size_t *bytes);

/* Adds all rows; `what` is the stage's name: "building". Returns an exit status. */
int adding_run(adding *adding, const char *what);

#endif
