/* Nodes that walks lose. Lists of nearest nodes alone do not lead out of a cluster: a walk that comes down in another
 * one does not find what is near to its query. */
#ifndef SL_HNSW_BUILD_LOST_H
#define SL_HNSW_BUILD_LOST_H

#include "hnsw/graph/entry.h"
#include "hnsw/graph/index.h"

/* Tells whether walks from the entry point lose more than a 256th of the graph's nodes, judged by some of them. The
 * answer depends on the graph alone. Errors: SL_ENOMEM. */
sl_status sl_lost_many(const sl_graph *graph, sl_entry entry, size_t threads, sl_progress *progress, int *many);

#endif
