/* Views: the graph that a reader sees while another process writes the file. */
#ifndef SL_HNSW_GRAPH_VIEW_H
#define SL_HNSW_GRAPH_VIEW_H

#include "hnsw/graph/index.h"

/* The graph to read. A handle that follows a file copies its graph to `*copy` and updates the copy. Other handles
 * return their own graph. */
const sl_graph *sl_view_of(const sl_index *index, sl_graph *copy);

/* Updates a view to the writer's last sync. Leaves the view as it is if the published counts don't fit the room. */
void sl_view_follow(const sl_index *index, sl_graph *view);

#endif
