/* Linking all nodes of an index at once, from leaves of near nodes. */
#ifndef SL_HNSW_BUILD_FROM_LEAVES_H
#define SL_HNSW_BUILD_FROM_LEAVES_H

#include "hnsw/build/build.h"

/* Vectors below which inserting is as fast. */
#define SL_FROM_LEAVES_LEAST 4096u

/* Returns what is lacking for `n` more nodes to be linked so, as a phrase; NULL where nothing is. */
const char *sl_from_leaves_lacks(const sl_index *index, size_t n);

/* Tells whether that was measured to give the better graph. With few leaves a node, or few links, clusters lose touch.
 * With many links, or where there are more nodes already, inserting is as fast. */
int sl_from_leaves_suits(const sl_graph *graph, size_t first, size_t n);

/* Links the build's nodes on all layers, and sets the entry point. Their lists are empty before. They are empty again
 * after a failure. Nodes that are there already are joined with the new ones: their lists, and all of the upper
 * layers, are made anew. After a failure these are as they were. The lists depend on rows, seed, parameters and the
 * lists that are there: the number of threads changes nothing. Errors: SL_ENOMEM, SL_ECANCELED; with a work file also
 * SL_ENOSPC and SL_EIO. */
sl_status sl_from_leaves_link(sl_build *build);

/* Bytes that linking all nodes of an index takes at most beside the index: of nodes whose codes all differ, or of nodes
 * of which some are `alike`; compared in I8 or in F32, whichever takes more. A sample, and an upper layer, takes less
 * than layer 0. `graph` needs no arrays. */
sl_status sl_from_leaves_bytes(const sl_graph *graph, size_t threads, int alike, size_t *bytes);
/* Counts the comparisons of nodes with centres: see sl_leaves_comparisons. */
double sl_from_leaves_comparisons(const sl_graph *graph);
double sl_from_leaves_pairs(const sl_graph *graph);

#endif
