/* Rows for tests of item tables: every type of column, with some missing values. An id and a version determine the
 * values of a row. Failures end the test. */
#ifndef SL_TESTS_ITEM_ROWS_H
#define SL_TESTS_ITEM_ROWS_H

#include <shortlist_rank.h>

enum { EVERY_ROWS = 40, EVERY_DIM = 3, EVERY_COLUMNS = 8 };

typedef struct every {
    sl_table table;
    sl_column columns[EVERY_COLUMNS];
    int64_t ids[EVERY_ROWS], longs[EVERY_ROWS];
    float floats[EVERY_ROWS], vectors[EVERY_ROWS * EVERY_DIM];
    double doubles[EVERY_ROWS];
    int32_t integers[EVERY_ROWS];
    int64_t text_offsets[EVERY_ROWS + 1], lists[EVERY_ROWS + 1], list_offsets[3 * EVERY_ROWS + 1];
    char text[EVERY_ROWS * 40], list_text[3 * EVERY_ROWS * 40];
    uint8_t valid[EVERY_ROWS / 8 + 1];
} every;

/* Fills in n rows, up to EVERY_ROWS. */
void every_fill(every *e, const uint64_t *ids, size_t n, unsigned version);
/* Keeps the id column and column c for each bit c of `which`. */
void every_pick(every *e, unsigned which);

/* The table has these values of an id. expect_columns checks column c if bit c of `which` is set. */
void expect_text(const sl_items *items, uint64_t id, const char *column, const char *wanted);
void expect_columns(const sl_items *items, uint64_t id, unsigned version, unsigned which);
void expect_row(const sl_items *items, uint64_t id, unsigned version);

/* A source that gives a table's rows in blocks of a few. The caller frees the cursor. */
typedef struct pieces {
    sl_rows rows;
    sl_table_cursor *cursor;
    sl_rows whole;
    size_t most;
} pieces;
void pieces_of(pieces *p, const sl_table *table, size_t most);
sl_items *items_of(const sl_table *table, size_t most, const sl_allocator *allocator);

/* Ids that are far apart. */
extern const uint64_t sparse_ids[EVERY_ROWS];

#endif
