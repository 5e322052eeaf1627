/* Numbering nodes anew: nodes that a walk meets together then lie together. */
#ifndef SL_HNSW_BUILD_RENUMBER_H
#define SL_HNSW_BUILD_RENUMBER_H

#include "hnsw/graph/index.h"

/* Smaller indexes lie in a second-level cache, in whatever order. */
#define SL_RENUMBER_LEAST 4096u

/* Renumbers all nodes by partition, and the nodes of a partition in breadth-first order from the entry point. Rows,
 * links and visited marks of neighbours then share cache lines and pages. It does so where enough of the index has
 * come since the last time. Vectors keep their ids, and stored settings scan as large a part of the vectors as before.
 * Parameters: `most`: the part of the nodes, in sixteenths, that may lie out of order. `threads` learn the partitions;
 * 0: as many as OpenMP gives. `progress`, which may be NULL, is asked whether to go on; cancelled, it leaves all as it
 * is.
 * Memory: for a while some 13 bytes a vector and two rows for each partition. From then on ids take 8 bytes each.
 * Without that memory, or for a small index, all stays as it is: order is speed. Threads: no other call on the index
 * meanwhile. */
void sl_renumber_settle(sl_index *index, size_t most, size_t threads, sl_progress *progress);

/* Tells the bytes that this takes for a while, with those of the new ids. `graph` needs no arrays. */
sl_status sl_renumber_bytes(const sl_graph *graph, size_t threads, size_t *bytes);

#endif
