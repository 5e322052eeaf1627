/* Lists within a cell of a CSV file: ids between bars, numbers between blanks. */
#ifndef CLI_FILES_CELL_LISTS_H
#define CLI_FILES_CELL_LISTS_H

#include <shortlist_rank.h>

/* The bytes of a TEXT column's row, without a NUL at the end. */
typedef struct cell {
    const char *text;
    size_t length;
} cell;
cell column_cell(const sl_column *column, size_t row);

/* Lists of ids, one after the other: list i is ids[start[i]] to ids[start[i + 1] - 1]. */
typedef struct id_lists {
    uint64_t *ids;
    size_t *start;
    size_t lists, room, start_room;
} id_lists;
void id_lists_free(id_lists *lists);
/* Empties the lists and keeps their memory. */
void id_lists_clear(id_lists *lists);
/* Adds the list "12|7|99"; an empty cell is an empty list. `where` names the cell in messages. Returns an exit
 * status. */
int id_lists_append(id_lists *lists, cell cell, const char *where);

/* Reads exactly `dim` finite numbers: "0.5 -1 3e-2". */
int cell_numbers(cell cell, float *out, size_t dim, const char *where);

#endif
