/* Links all new nodes of an index at once, from leaves of near nodes. */
#ifndef SL_HNSW_CONSTRUCT_FROM_LEAVES_H
#define SL_HNSW_CONSTRUCT_FROM_LEAVES_H

#include "hnsw/construct/build.h"

/* With fewer vectors inserting is as fast. */
#define SL_FROM_LEAVES_LEAST 4096u

/* Returns what's missing to link `n` more nodes from leaves, as a phrase for a message; NULL if nothing is missing. */
const char *sl_from_leaves_lacks(const sl_index *index, size_t n);

/* Returns whether leaves pay. The limits come from past measurements; the call measures nothing. With a low fan-out or
 * few links, clusters lose touch. With many links, or if the index has more nodes than come now, inserting is as fast.
 */
int sl_from_leaves_suits(const sl_graph *graph, size_t first, size_t n);

/*
 * Links the build's nodes on all layers, and sets the entry point.
 *
 * The new nodes must have empty lists. If the index has other nodes, the call joins these with the new ones: it makes
 * their lists and all upper layers anew. After a failure the new nodes have empty lists again, and the others their old
 * lists. The lists depend on rows, seed, parameters and the lists before the call, not on the number of threads.
 *
 * Errors: SL_ENOMEM, SL_ECANCELED; with a work file also SL_ENOSPC and SL_EIO.
 */
sl_status sl_from_leaves_link(sl_build *build);

/* Sets *bytes to the most that linking all nodes of an index takes beside the index itself. A build compares in I8 or
 * in F32; the larger number counts. `alike`: some nodes are duplicates. Samples and upper layers take less than layer
 * 0, so they don't count. `graph` needs no arrays. Errors: SL_ENOMEM. */
sl_status sl_from_leaves_bytes(const sl_graph *graph, size_t threads, int alike, size_t *bytes);
/* Number of comparisons of nodes with centres, and of nodes with each other in leaves. See leaves_make.h. */
double sl_from_leaves_comparisons(const sl_graph *graph);
double sl_from_leaves_pairs(const sl_graph *graph);

#endif
