/* Copies of the upper layers, one on each memory node: queries read them, wherever they run. The index's own are
 * those that are written to and saved. */
#ifndef SL_HNSW_PLACE_REPLICAS_H
#define SL_HNSW_PLACE_REPLICAS_H

#include "hnsw/graph/index.h"

/* For an index with a policy on a machine of several nodes; of others nothing is made. */
sl_status sl_replicas_init(sl_index *index);
void sl_replicas_free(sl_graph *graph);

/* Makes the copies where there are none, as they may be many at once that want them. Without memory for one, searches
 * on that node read the index's own, and the log says so. */
void sl_replicas_make(const sl_index *index);
/* Forgets them: the upper layers are about to change. Needs the handle to itself. */
void sl_replicas_drop(sl_graph *graph);

/* What there are. */
size_t sl_replicas_count(const sl_graph *graph);

/* The upper layers for the calling thread: those of the node it runs on, or the index's own. */
const sl_upper *sl_replicas_here(const sl_graph *graph);
static inline const sl_upper *sl_upper_here(const sl_graph *graph) {
    return graph->replicas ? sl_replicas_here(graph) : &graph->upper;
}

#endif
