/* Makes leaves: divides the members of a layer, SL_PARTITIONINGS times (PiPNN, arXiv 2602.21247). */
#ifndef SL_HNSW_BUILD_LEAVES_MAKE_H
#define SL_HNSW_BUILD_LEAVES_MAKE_H

#include "hnsw/build/leaves.h"

/* Makes leaves. folds: leaves of one partitioning that a member is in, 1 to SL_MAX_FAN_OUT. The result depends on the
 * rows and the graph's seed; the number of threads changes nothing. Leaves that were noted are taken from there. The
 * caller frees, also on failure. Errors: SL_ENOMEM, SL_ECANCELED, SL_ENOSPC, SL_EIO. */
sl_status sl_leaves_make(sl_leaves *leaves, const sl_points *points, size_t fan_out);
/* Bytes of leaves. Parting a leaf again is not counted: later steps take more. */
sl_bytes sl_leaves_bytes(const sl_points *points, size_t fan_out);
/* Counts the comparisons of members with centres. Under IP they grow as the square of n: each centre is compared with
 * all members. */
double sl_leaves_comparisons(size_t n, size_t fan_out, sl_metric metric);
/* Counts the comparisons of members with those of their leaves, were every leaf of the usual size. */
double sl_leaves_pairs(size_t n, size_t fan_out);

#endif
