/* Nodes that walks lose. Lists of nearest nodes alone do not lead out of a cluster: a walk that comes down in another
 * one does not find what is near to its query. */
#ifndef SL_HNSW_BUILD_REACHABILITY_SAMPLE_H
#define SL_HNSW_BUILD_REACHABILITY_SAMPLE_H

#include "hnsw/graph/entry.h"
#include "hnsw/graph/index.h"

/* Tells whether walks from the entry point lose more than a 512th of a graph's nodes from `first` on, judged by 1,024
 * of them. Parameters: `progress` may be cancelled; *many then means nothing. The answer depends on the graph alone.
 * Threads: the call starts its own; nobody changes the graph. Errors: SL_ENOMEM. */
sl_status sl_reachability_sample(const sl_graph *graph, size_t first, size_t threads, sl_progress *progress,
                                 int *many_lost);
/* Sets *bytes to those that the call allocates. Errors: SL_ENOMEM. */
sl_status sl_reachability_sample_bytes(const sl_graph *graph, size_t threads, size_t *bytes);

#endif
