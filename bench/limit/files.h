/* Queries and their true neighbours, as the files of a data set hold them. */
#ifndef BENCH_LIMIT_FILES_H
#define BENCH_LIMIT_FILES_H

#include "shortlist.h"

/* Ends the program unless the status is SL_OK, with the library's message. */
void must(sl_status status, const char *what);
void *must_alloc(size_t count, size_t size);

/* A file of two 32-bit counts, rows and columns, and then the rows. */
typedef struct matrix {
    size_t rows, columns, row_bytes;
    uint8_t *at;
} matrix;

matrix matrix_read(const char *path, size_t element_bytes);

static inline const void *matrix_row(const matrix *m, size_t row) {
    return m->at + row * m->row_bytes;
}

#endif
