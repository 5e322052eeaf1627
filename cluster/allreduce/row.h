/* Ranks that reduce together: a row or a column of a torus, or all of them. */
#ifndef SL_CLUSTER_ALLREDUCE_ROW_H
#define SL_CLUSTER_ALLREDUCE_ROW_H

#include "cluster/allreduce/levels.h"
#include "cluster/allreduce/traffic.h"

/* How the ranks of a row reach one another. */
typedef enum sl_row_kind { SL_ROW_HALVING, SL_ROW_RING, SL_ROW_BINE } sl_row_kind;

/* Where the ranks of a row stand among those of the communicator. The first `pairs` places take every other rank: the
 * ranks between are folded into them. */
typedef struct sl_row_layout {
    size_t first, stride, length, pairs;
    size_t place; /* of this rank in the row */
} sl_row_layout;

typedef struct sl_row {
    sl_row_kind kind;
    sl_row_layout layout;
    sl_levels levels; /* of a ring: they order the parts, so that sums may go on by levels */
} sl_row;

/* The caller frees, also on failure. Errors: SL_ENOMEM. */
sl_status sl_row_create(sl_row_kind kind, const sl_row_layout *layout, const sl_allocator *allocator, sl_row *out);
void sl_row_free(sl_row *row);

/* The rank at a place. */
static inline size_t sl_row_rank(const sl_row *row, size_t place) {
    const sl_row_layout *layout = &row->layout;
    return layout->first + layout->stride * (place < layout->pairs ? 2 * place : place + layout->pairs);
}

/* Reduce-scatter: *own becomes the part of `range` whose sums over the row this rank then has. Its other numbers in
 * `range` are spoilt. */
sl_status sl_row_scatter(const sl_row *row, sl_traffic *traffic, float *numbers, sl_slice range, sl_slice *own);
/* The same in steps, from 0 to sl_row_scatter_steps - 1. */
size_t sl_row_scatter_steps(const sl_row *row);
sl_status sl_row_scatter_step(const sl_row *row, size_t step, sl_traffic *traffic, float *numbers, sl_slice range);
/* All-gather: every rank of the row gets the parts of `range` that the others have after sl_row_scatter. */
sl_status sl_row_gather(const sl_row *row, sl_traffic *traffic, float *numbers, sl_slice range);

/* The part of `range` that this rank keeps. */
sl_slice sl_row_own(const sl_row *row, sl_slice range);
/* The part that the rank at a place keeps, of a row by halving or by a ring. */
sl_slice sl_row_part(const sl_row *row, sl_slice range, size_t place);
/* What is left of `range` for this rank after some levels. */
sl_slice sl_row_after(const sl_row *row, size_t levels, sl_slice range);

/* Add the cost of sl_row_scatter and of sl_row_gather by formula. */
void sl_row_scatter_cost(const sl_row *row, sl_wire wire, sl_slice range, sl_allreduce_cost *cost);
void sl_row_gather_cost(const sl_row *row, sl_wire wire, sl_slice range, sl_allreduce_cost *cost);
/* Adds the cost of an all-gather by levels, whatever the kind of the row. */
void sl_row_levels_cost(const sl_row *row, sl_wire wire, sl_slice range, sl_allreduce_cost *cost);
/* Adds a number of transfers of `count` numbers each. */
void sl_cost_add(sl_allreduce_cost *cost, sl_wire wire, size_t transfers, size_t count);

/* Numbers and transfers of a step, for sl_traffic_create. */
size_t sl_row_room(const sl_row *row, size_t count);
size_t sl_row_transfers(const sl_row *row);

#endif
