/* Small tables for tests of features; fits and encodes them. Failures end the test. */
#ifndef SL_TESTS_COLUMNS_H
#define SL_TESTS_COLUMNS_H

#include "ranker/features/encode.h"

enum { COLUMNS = 12, COLUMN_ROWS = 64 };

/* A table under construction; columns point into it. Rows are those of the first column. */
typedef struct columns {
    sl_table table;
    sl_column list[COLUMNS];
    int64_t offsets[COLUMNS][8 * COLUMN_ROWS];
    int64_t lists[COLUMNS][COLUMN_ROWS + 1];
    char bytes[COLUMNS][64 * COLUMN_ROWS];
} columns;

void columns_start(columns *c);
/* Adds a column of values separated by spaces; "-" is an empty one. */
void columns_text(columns *c, const char *name, const char *values);
/* Adds a column of lists: rows separated by spaces, texts by commas; "-" is an empty list. */
void columns_texts(columns *c, const char *name, const char *rows);
/* Adds a column of the caller's arrays, with a value for each row. */
void columns_values(columns *c, const char *name, sl_column_type type, const void *values, size_t rows);

/* Returns a spec with these features and a label "y" of 0 and 1. */
sl_spec *columns_spec(const char *features, const sl_allocator *allocator);
/* Returns features fitted to the table, read in blocks of `block` rows. */
sl_features *columns_fit(const char *features, const columns *c, size_t block);
/* Encodes the table's rows. */
void columns_encode(const sl_features *features, const columns *c, sl_rows_buffer *out);
/* Fits, encodes, and returns the table's ids of the first id column, or its first dense column. */
void columns_ids(const char *features, const columns *c, uint32_t *out);
void columns_floats(const char *features, const columns *c, float *out);

#endif
