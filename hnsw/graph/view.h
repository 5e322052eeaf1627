/* Views: the graph of a handle that follows a file which another process writes. */
#ifndef SL_HNSW_GRAPH_VIEW_H
#define SL_HNSW_GRAPH_VIEW_H

#include "hnsw/graph/index.h"

/* Copies the counts that the file's writer published last into a view. If they don't fit together, as within a sync,
 * the view stays as it was. Threads: any number. */
void sl_view_follow(const sl_index *index, sl_graph *view);

#endif
