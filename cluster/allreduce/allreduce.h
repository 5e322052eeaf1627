/* All-reduce: the ranks add up arrays of floats in place, and every rank gets the sums.
 *
 * The sums have the same bits on every rank. They depend on the numbers, their count, the number of ranks and the
 * parameters alone, except those of `mpi`, whose order of additions is MPI's. sl_allreduce_bound gives the largest
 * difference from exact sums. docs/internals/cluster-allreduce.md draws the algorithms.
 *
 * Threads: one call at a time for each object, from any thread. Objects have communicators of their own, so the other
 * threads of the rank may use MPI through cluster/comm meanwhile. While an object of torus-put is made, runs or is
 * freed, no other thread may make or free objects or communicators, or run another torus-put. These calls wait for
 * other ranks inside MPI. */
#ifndef SL_CLUSTER_ALLREDUCE_ALLREDUCE_H
#define SL_CLUSTER_ALLREDUCE_ALLREDUCE_H

#include "cluster/allreduce/params.h"
#include "cluster/comm/comm.h"

typedef struct sl_allreduce sl_allreduce;

/*
 * Makes what sums up to max_count numbers need: buffers, communicators, windows. All ranks of `comm` call it together.
 *
 * Windows prove themselves by a small sum. If it is wrong or fails, the two-sided torus replaces torus-put, and `log`
 * gets a line.
 *
 * *out goes to sl_allreduce_free, before `comm` ends. It is NULL after a failure.
 * Errors: SL_EINVAL (rows * columns is not the number of ranks, ...), SL_ENOMEM, SL_EIO. All ranks fail alike.
 */
sl_status sl_allreduce_create(const sl_comm *comm, const sl_allreduce_params *params, size_t max_count,
                              sl_allreduce **out);

/* Replaces numbers[0..count) by their sums over the ranks. All ranks call it together, with the same count.
 * Errors: SL_EINVAL (count is above max_count), SL_EIO (the job is broken). */
sl_status sl_allreduce_run(sl_allreduce *reduce, float *numbers, size_t count);

/* All ranks call it together. NULL is allowed. */
void sl_allreduce_free(sl_allreduce *reduce);

/* What runs: the parameters after choice and replacement, for sums of `count` numbers. */
sl_allreduce_params sl_allreduce_used(const sl_allreduce *reduce, size_t count);

/* The cost by formula, of `reduce` on this rank. sl_comm_counted grows by these messages and bytes. */
sl_allreduce_cost sl_allreduce_cost_of(const sl_allreduce *reduce, size_t count);

/* The largest difference of a sum from the exact one, as a share of the sum of magnitudes. It is about
 * sums * 2^-24 + roundings * 2^-8. Holds for sums that neither overflow nor underflow. */
double sl_allreduce_bound(const sl_allreduce *reduce, size_t count);

#endif
