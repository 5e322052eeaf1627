/* Which parts hold a vector: the part of its nearest cell, and near a border the next part too (closure assignment, as
 * in SPANN, arXiv 2111.08566). */
#ifndef SL_CLUSTER_SEARCH_PLACE_ROWS_H
#define SL_CLUSTER_SEARCH_PLACE_ROWS_H

#include "cluster/comm/comm.h"
#include "cluster/search/parts.h"

typedef struct sl_row_place {
    uint16_t part, second; /* second: the part of the next border; SL_NO_PART: none */
    float reach;           /* distance from that border */
} sl_row_place;

/* Finds the places of `count` rows, dense and checked.
 * Errors: SL_ENOMEM. */
sl_status sl_rows_place(const sl_cells *cells, sl_opening opening, size_t threads, const void *rows, sl_dtype dtype,
                        size_t count, sl_row_place *places);

/* Chooses the copies: forgets the second part of all but the rows nearest to a border, at most `most` over all ranks.
 * Every rank calls it with its own rows. *copies: over all ranks. */
sl_status sl_rows_limit_copies(const sl_comm *comm, sl_row_place *places, size_t count, uint64_t most,
                               uint64_t *copies);

/* Rows that a part gets, in memory. */
typedef struct sl_part_rows {
    sl_allocator allocator;
    uint8_t *rows;
    uint64_t *numbers; /* of each row in the base */
    uint64_t *others;  /* the other part that holds the row, and 1; 0: none */
    size_t count, row, rows_room, numbers_room, others_room;
} sl_part_rows;
void sl_part_rows_free(sl_part_rows *rows);

/* Rows of one rank, and where they go. */
typedef struct sl_placed_rows {
    const uint8_t *rows; /* count rows of `row` bytes */
    const sl_row_place *places;
    size_t row, first, count; /* first: number of the first row in the base */
} sl_placed_rows;

/* Sends rows to the ranks of their parts. The rows of rank r + 1 follow those of rank r in the base. Every rank calls
 * it.
 * Parameters: parts: of the split. mine: gets the rows of this rank's parts, in the order of their numbers.
 * Errors: SL_ENOMEM, SL_EIO. */
sl_status sl_rows_send(const sl_comm *comm, size_t parts, const sl_placed_rows *rows, sl_part_rows *mine);

#endif
