/* Adds the vectors of a file to an index, block by block. */
#ifndef CLI_ADDING_H
#define CLI_ADDING_H

#include "cli/vectors.h"

#include <shortlist.h>

typedef struct adding {
    sl_index *index;
    vectors *base;
    element type;        /* type in which the base is read */
    const uint64_t *ids; /* one id a row, or NULL */
    size_t threads;
    int progress; /* --progress */
    /* Reports that the rows from `first` on were refused. Returns an exit status. */
    int (*refused)(void *ctx, size_t first, sl_status status);
    void *refused_ctx;
    void *block; /* to be freed */
    size_t block_rows;
    double read_s, add_s; /* time of the adding */
} adding;

/* Makes the block by which the base is read. `most`: its largest size in bytes; 0: the usual size. *bytes, which may
 * be NULL, gets its size. Returns an exit status. */
int adding_prepare(adding *adding, size_t most, size_t *bytes);

/* Adds all rows; `what` is the stage's name: "building". Returns an exit status. */
int adding_run(adding *adding, const char *what);

#endif
