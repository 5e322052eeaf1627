/* The rows of torus-put: all-gather, and reduce-scatter by option, by MPI_Put into the windows of a row's ranks.
 *
 * The numbers go in chunks. While the sums of one chunk are put, the next chunk is reduced. A rank's window holds the
 * numbers of two chunks in the wire's type, and the parts that others put there to be summed. */
#ifndef SL_CLUSTER_ALLREDUCE_PUT_H
#define SL_CLUSTER_ALLREDUCE_PUT_H

#include "cluster/allreduce/row.h"

typedef struct sl_put {
    sl_allocator allocator;
    sl_comm comm; /* of the row alone */
    sl_wire wire;
    sl_window_sync sync;
    int reduces;    /* the reduce-scatter is by MPI_Put too */
    int is_proven;  /* a failed call breaks the job from now on */
    int is_wrecked; /* a call failed, so nobody waits for the window's end */
    size_t chunk;   /* numbers */
    size_t halves;  /* chunks that the window gathers: 1 if all numbers are one chunk, else 2 */
    size_t part;    /* numbers of a rank's part of a chunk, at most */
    MPI_Win window;
    char *memory;      /* of the window: the gathered numbers of the chunks, then `part` numbers of each rank */
    char *packed;      /* parts that leave on a wire of bf16, with `reduces` */
    MPI_Group *groups; /* of pscw: partners of each level, then all others of the row */
    size_t group_count;
    MPI_Request *requests; /* of pscw: a row's signals */
} sl_put;

/* Makes the windows of a row, for sums of up to max_count numbers. All ranks of `comm` call it together; they may fail
 * differently. The caller frees, also on failure. Errors: SL_ENOMEM, SL_EIO. */
sl_status sl_put_create(const sl_comm *comm, const sl_row *row, const sl_allreduce_params *params, size_t max_count,
                        const sl_allocator *allocator, sl_put *out);
/* All ranks call it together, and is_wrecked is the same on all. */
void sl_put_free(sl_put *put);

/* Sums numbers[0..count): along the row, then along the column by `traffic`, and back. */
sl_status sl_put_run(sl_put *put, const sl_row *row, const sl_row *column, sl_traffic *traffic, float *numbers,
                     size_t count);
void sl_put_cost(const sl_put *put, const sl_row *row, const sl_row *column, size_t count, sl_allreduce_cost *cost);

#endif
