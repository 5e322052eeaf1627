/* Sums by MPI's own all-reduce. */
#ifndef SL_CLUSTER_ALLREDUCE_MPI_SUM_H
#define SL_CLUSTER_ALLREDUCE_MPI_SUM_H

#include "cluster/allreduce/traffic.h"

/* Makes the operation that adds bf16 numbers. The caller frees it by MPI_Op_free. */
sl_status sl_mpi_sum_op(const sl_comm *comm, MPI_Op *op);

/* Sums numbers[0..count) in place. `traffic` has room for them. `op`: for a wire of bf16. */
sl_status sl_mpi_sum(sl_traffic *traffic, MPI_Op op, float *numbers, size_t count);

#endif
