/* A CSV file as it is read: a buffer over the file, and for each column the texts of a block of rows, laid one behind
 * the other as a TEXT column wants them. */
#ifndef SL_RANKER_FEATURES_CSV_H
#define SL_RANKER_FEATURES_CSV_H

#include "base/memory.h"

#include <shortlist_rank.h>

/* The most bytes that a row may have in the file. A quote that is never closed would else read the rest of the file
 * into memory. */
#define SL_CSV_ROW_LIMIT ((size_t)16 << 20)

#define SL_CSV_COLUMN_LIMIT 16384u

typedef struct csv_field {
    char *name;
    size_t name_size;
    char *bytes;
    size_t used, room;
    int64_t *offsets;
    size_t offset_room;
} csv_field;

struct sl_csv {
    sl_allocator allocator;
    char *path;
    size_t path_size;
    int fd;
    char delimiter;
    int has_header;
    csv_field *fields;
    sl_column *columns; /* of the last block */
    size_t column_count;
    csv_field header; /* the header's fields as if they were rows of one column */
    uint64_t *lines;
    size_t line_room;
    char *buffer; /* bytes at to end are read and not yet parsed; some slack lies behind */
    size_t buffer_room, at, end;
    int at_end;    /* of the file */
    uint64_t line; /* of buffer[at] */
};

/* csv_read.c. At the file's first byte: an empty buffer, and a byte order mark passed over. */
sl_status csv_start(sl_csv *csv);
/* The first line's fields; *count 0 where there is none. They are the csv's until it is freed. */
sl_status csv_read_header(sl_csv *csv, const char **bytes, const int64_t **starts, size_t *count);
sl_status csv_skip_header(sl_csv *csv);
/* One row, as row `row` of every column. *size: its bytes in the file; 0 at the end. */
sl_status csv_read_row(sl_csv *csv, size_t row, size_t *size);

#endif
