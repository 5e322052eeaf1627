/* Measures whether codes tell near vectors apart. */
#ifndef SL_HNSW_CONSTRUCT_RESOLUTION_H
#define SL_HNSW_CONSTRUCT_RESOLUTION_H

#include "base/thread.h"
#include "hnsw/construct/neighbour_lists.h"
#include "hnsw/graph/index.h"

/* A vector is too close to its neighbours if this many of them lie within a few steps of a code. */
enum { SL_CLOSE_NEIGHBOURS = 16 };

/* Returns whether an index's own codes may tell vectors apart that 8 bits don't: codes of more than 12 bits under L2.
 */
int sl_is_finer_than_bytes(const sl_codec *codec);

/*
 * Chooses the codes in which a build compares vectors: I8, or F32 if 8 bits don't tell neighbours apart.
 *
 * F32 is needed if neighbours are only a few code steps apart. That happens far from the origin, because a step grows
 * with a vector's largest element. The call compares a sample of 64 vectors with all others.
 *
 * Under other metrics than L2, and for an index whose own codes have 12 bits or fewer, the codes are I8. The result
 * depends on the vectors and the seed. Threads and instruction set only change borderline cases.
 *
 * Errors: SL_ENOMEM, SL_ECANCELED.
 */
sl_status sl_compared_codes(const sl_graph *graph, size_t threads, sl_progress *progress, sl_codes *codes);

/* Counts the points from `first` on that are too close to their neighbours: 16 neighbours of the list, or all of a
 * shorter list, lie within those few steps. Points are compared under L2 in I8. Duplicates in `own`, the graph with its
 * own codes, aren't neighbours. The call looks at all points, so it also finds small clusters that the sample of 64 may
 * miss. */
size_t sl_count_close_points(const sl_neighbour_lists *neighbours, const sl_points *points, const sl_graph *own,
                             size_t first);

#endif
