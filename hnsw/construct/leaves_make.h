/* Divides the points of a layer into leaves (PiPNN, arXiv 2602.21247). */
#ifndef SL_HNSW_CONSTRUCT_LEAVES_MAKE_H
#define SL_HNSW_CONSTRUCT_LEAVES_MAKE_H

#include "hnsw/construct/leaves.h"

/*
 * Makes the leaves of all SL_PARTITIONINGS partitionings, or reads them from points->work.
 *
 * Parameters: `fan_out`: the number of leaves that a point goes to in one partitioning, 1 to SL_MAX_FAN_OUT. The caller
 * frees the leaves, also on failure. The leaves depend on the rows and the graph's seed, not on the number of threads.
 *
 * Errors: SL_ENOMEM, SL_ECANCELED, SL_ENOSPC, SL_EIO.
 */
sl_status sl_leaves_make(sl_leaves *leaves, const sl_points *points, size_t fan_out);
/* Bytes. `kept`: of the leaves. `most`: while they are made. Bytes for dividing a large leaf again aren't counted,
 * since later steps take more. */
sl_bytes sl_leaves_bytes(const sl_points *points, size_t fan_out);
/* Number of comparisons of points with centres. Under IP they grow with the square of n, since each centre is compared
 * with all points. */
double sl_leaves_comparisons(size_t n, size_t fan_out, sl_metric metric);
/* Number of comparisons within leaves, if every leaf has SL_LEAF_POINTS points. */
double sl_leaves_pairs(size_t n, size_t fan_out);

#endif
