/* Copies of the upper layers, one a memory node. A search reads the copy of its own node. Adds and saves use the
 * index's own upper layers. */
#ifndef SL_HNSW_PLACE_REPLICAS_H
#define SL_HNSW_PLACE_REPLICAS_H

#include "hnsw/graph/version.h"

/* Prepares the copies, if the index has a NUMA policy and the machine several nodes.
 * Errors: SL_ENOMEM. */
sl_status sl_replicas_init(sl_index *index);
/* Frees the copies. Threads: no other thread may use the index. */
void sl_replicas_free(sl_index *index);

/* Makes the copies, if there are none. If a node lacks memory for its copy, searches there read the index's own upper
 * layers, and the log says so. Threads: any number. */
void sl_replicas_make(const sl_index *index);
/* Puts the copies out of use before the upper layers change. They are freed once no search can hold them.
 * Threads: the caller has the index for a change; searches go on. */
void sl_replicas_drop(sl_index *index);

size_t sl_replicas_count(const sl_graph *graph);

/* The upper layers for the calling thread: its node's copy, or the graph's own. */
const sl_upper *sl_replicas_here(const sl_graph *graph);
static inline const sl_upper *sl_upper_here(const sl_graph *graph) {
    return graph->replicas ? sl_replicas_here(graph) : &graph->upper;
}

#endif
