/* One algorithm, ready to run among the ranks of one communicator. */
#ifndef SL_CLUSTER_ALLREDUCE_SCHEME_H
#define SL_CLUSTER_ALLREDUCE_SCHEME_H

#include "cluster/allreduce/put.h"
#include "cluster/allreduce/row.h"

typedef struct sl_scheme {
    sl_allocator allocator;
    sl_comm comm; /* of the caller */
    sl_allreduce_params params;
    size_t folded_with; /* rank that folds with this one; comm.ranks: none */
    int folds;          /* this rank hands its numbers over, and gets the sums back */
    size_t row_count;   /* reduce-scatter along rows[0], rows[1], ...; then all-gather back; 0 for `mpi` */
    sl_row rows[2];
    sl_traffic traffic;
    MPI_Op op;  /* of `mpi` with bf16 */
    sl_put put; /* of torus-put */
} sl_scheme;

/* Fills in what the parameters leave open for this many ranks: the shape. Errors: SL_EINVAL. */
sl_status sl_scheme_choose(sl_allreduce_params *params, size_t ranks);

/* `params` has passed sl_scheme_choose and names an algorithm. All ranks call it together; they may fail differently.
 * The caller frees, also on failure. Errors: SL_ENOMEM, SL_EIO. */
sl_status sl_scheme_create(const sl_comm *comm, const sl_allreduce_params *params, size_t max_count,
                           const sl_allocator *allocator, sl_scheme *out);
sl_status sl_scheme_run(sl_scheme *scheme, float *numbers, size_t count);
void sl_scheme_cost(const sl_scheme *scheme, size_t count, sl_allreduce_cost *cost);
void sl_scheme_free(sl_scheme *scheme);

#endif
