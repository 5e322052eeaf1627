/* Measures on a sample whether walks reach the nodes of a graph. Lists of nearest nodes don't lead out of a cluster. A
 * walk that comes down in the wrong cluster then misses its query's neighbours. */
#ifndef SL_HNSW_CONSTRUCT_REACHABILITY_SAMPLE_H
#define SL_HNSW_CONSTRUCT_REACHABILITY_SAMPLE_H

#include "hnsw/graph/entry.h"
#include "hnsw/graph/index.h"

/*
 * Sets *many_lost if walks from the entry point lose more than a 512th of the nodes from `first` on, in a sample of
 * 1,024. The answer depends on the graph alone.
 *
 * Parameters: `progress` may be cancelled; *many_lost then means nothing. Threads: the call starts its own; nobody
 * changes the graph. Errors: SL_ENOMEM.
 */
sl_status sl_reachability_sample(const sl_graph *graph, size_t first, size_t threads, sl_progress *progress,
                                 int *many_lost);
/* Sets *bytes to the bytes that sl_reachability_sample allocates. Errors: SL_ENOMEM. */
sl_status sl_reachability_sample_bytes(const sl_graph *graph, size_t threads, size_t *bytes);

#endif
