/* The layer under the algorithms: ranks of one machine add up through memory that they share.
 *
 * The numbers go in chunks. Each rank copies its chunk into its slot of a shared window, except the slice that it adds
 * up itself. It adds the others' slices to its own, leaves the sums in its slot, and copies the other sums out. */
#ifndef SL_CLUSTER_ALLREDUCE_SHARED_H
#define SL_CLUSTER_ALLREDUCE_SHARED_H

#include "cluster/allreduce/traffic.h"

typedef struct sl_shared {
    sl_comm ranks;   /* that share memory; rank 0 goes on the wire */
    sl_comm leaders; /* the first ranks of all machines; on the others: unused */
    size_t machines; /* or parts of machines, as machine_ranks says */
    size_t most;     /* ranks of a machine */
    size_t chunk;    /* numbers */
    MPI_Win window;
    uint64_t *flags; /* of the window: each rank's turn, a cache line apart */
    float *slots;    /* of the window: a chunk of each rank */
    uint64_t turn;
    size_t span;   /* numbers that the slices of the last sum divide */
    int yields;    /* as sl_comm_yields */
    int is_proven; /* no limit on waiting from now on */
} sl_shared;

/* Makes the window of this machine's ranks. All ranks of `comm` call it together; they may fail differently. The
 * caller frees, also on failure. Errors: SL_EIO. */
sl_status sl_shared_create(const sl_comm *comm, const sl_allreduce_params *params, size_t max_count, sl_shared *out);
/* All ranks call it together. */
void sl_shared_free(sl_shared *shared);

/* Sums over the machine. Every rank has the sums if there is one machine, else the first rank. */
sl_status sl_shared_reduce(sl_shared *shared, float *numbers, size_t count);
/* Every rank of the machine gets the first rank's numbers. */
sl_status sl_shared_spread(sl_shared *shared, float *numbers, size_t count);

#endif
