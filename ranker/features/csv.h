/* An open CSV file, with a buffer over the file. Each column keeps the texts of one block of rows, one after the other,
 * like a TEXT column. */
#ifndef SL_RANKER_FEATURES_CSV_H
#define SL_RANKER_FEATURES_CSV_H

#include "base/memory.h"

#include <shortlist_rank.h>

/* Limit on a row's bytes in the file. Without it, a quote that is never closed would read the rest of the file into
 * memory. */
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
    csv_field header; /* the header's fields, as the rows of one column */
    uint64_t *lines;
    size_t line_room;
    char *buffer; /* bytes from `at` to `end` are read but not parsed; SLACK bytes follow */
    size_t buffer_room, at, end;
    int at_end;    /* whether the file has ended */
    uint64_t line; /* of buffer[at] */
    uint64_t read; /* bytes of the file up to buffer[end] */
    /* A part of the file: the rows that begin from byte first_byte on, which is in line first_line, and before
     * end_byte. first_byte 0: from the beginning; end_byte UINT64_MAX: to the end. */
    uint64_t first_byte, first_line, end_byte;
};

/* Returns the place in the file of the next byte to parse. */
static inline uint64_t csv_place(const sl_csv *csv) {
    return csv->read - (csv->end - csv->at);
}

/* csv_open.c. Limits an open file to a part. Then its rows begin anew. */
sl_status csv_set_part(sl_csv *csv, uint64_t first_byte, uint64_t first_line, uint64_t end_byte);
/* csv_read.c. Begins at the file's first byte: empties the buffer and skips a byte order mark. */
sl_status csv_start(sl_csv *csv);
/* Gets the fields of the first line. *count is 0 in an empty file. The csv owns the fields. */
sl_status csv_read_header(sl_csv *csv, const char **bytes, const int64_t **starts, size_t *count);
sl_status csv_skip_header(sl_csv *csv);
/* Reads a row of the file into row `row` of every column. *size: its bytes in the file; 0 at the end. */
sl_status csv_read_row(sl_csv *csv, size_t row, size_t *size);

#endif
