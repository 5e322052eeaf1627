/* The results of a range search for one query. */
#ifndef CLI_FILES_RANGE_ROW_H
#define CLI_FILES_RANGE_ROW_H

#include <shortlist.h>

typedef struct range_row {
    uint64_t *ids;
    float *scores;
    size_t count, room;
    int full; /* memory was short, and the query ended early */
} range_row;

/* An sl_range_fn; `rows` has a row for each query. */
int range_row_take(void *rows, size_t query, uint64_t id, float score);

/* Sorts the nearest first, equal scores by id. Reports a lack of memory, here or earlier. Returns an exit status. */
int range_row_sort(range_row *row, sl_metric metric);

/* Empties a row but keeps its memory; frees a row. */
void range_row_clear(range_row *row);
void range_row_free(range_row *row);

#endif
