/* Views: the graph as a reader sees it while another process writes the file. */
#ifndef SL_HNSW_GRAPH_VIEW_H
#define SL_HNSW_GRAPH_VIEW_H

#include "hnsw/graph/index.h"

/* The graph that a reader uses. A handle that follows a file copies its graph to `*copy` and brings the copy up to
 * date. Every other handle returns its own graph. */
const sl_graph *sl_view_of(const sl_index *index, sl_graph *copy);

/* Puts into a view what the file's writer has published since. The view stays as it is where the published counts do
 * not fit the room. */
void sl_view_follow(const sl_index *index, sl_graph *view);

#endif
