/* A measure of whether codes tell near vectors apart. */
#ifndef SL_HNSW_BUILD_RESOLUTION_H
#define SL_HNSW_BUILD_RESOLUTION_H

#include "base/thread.h"
#include "hnsw/build/neighbour_lists.h"
#include "hnsw/graph/index.h"

/* A vector whose so many nearest all lie within a few steps of a code is not told from its neighbours. */
enum { SL_CLOSE_NEIGHBOURS = 16 };

/* Tells whether an index's own codes may tell vectors apart that 8 bits do not: under L2, codes of more than 12 bits.
 */
int sl_is_finer_than_bytes(const sl_codec *codec);

/*
 * Chooses the codes in which a build compares vectors: I8, or F32 where 8 bits do not tell neighbours apart. That is so
 * where neighbours lie closer than a few steps of a code, as vectors far from the origin do: a step is a part of a
 * vector's largest element. 64 vectors are compared with all others for this.
 *
 * I8 under other metrics than L2, and for an index whose own codes have no more than 12 bits. The answer depends on the
 * vectors and the seed; threads and instruction set change nothing but equal cases.
 *
 * Errors: SL_ENOMEM, SL_ECANCELED.
 */
sl_status sl_compared_codes(const sl_graph *graph, size_t threads, sl_progress *progress, sl_codes *codes);

/* Returns how many members from number `first` on have a 16th neighbour in their lists within those few steps. The
 * members are compared under L2 in I8. Copies in `own`, the graph with its own codes, are no neighbours. All members
 * count, and so does a small cluster that the 64 vectors miss. */
size_t sl_count_close_points(const sl_neighbour_lists *neighbours, const sl_points *points, const sl_graph *own,
                             size_t first);

#endif
