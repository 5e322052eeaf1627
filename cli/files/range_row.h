/* The results of a range search for one query. */
#ifndef CLI_FILES_RANGE_ROW_H
#define CLI_FILES_RANGE_ROW_H

#include <shortlist.h>

typedef struct range_row {
    uint64_t *ids;
    float *scores;
    size_t count, room;
    int full; /* memory was wanting; the query was ended */
} range_row;

/* The function of sl_index_range: `rows` has a row for each query. */
int range_row_take(void *rows, size_t query, uint64_t id, float score);

/* Puts the nearest first; equal scores go by their ids. Returns an exit status: want of memory, here or before, is
 * reported. */
int range_row_sort(range_row *row, sl_metric metric);

/* Empties a row and keeps its memory; frees it. */
void range_row_clear(range_row *row);
void range_row_free(range_row *row);

#endif
