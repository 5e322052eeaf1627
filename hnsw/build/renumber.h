/* Numbering nodes so that those a walk meets together lie together. */
#ifndef SL_HNSW_BUILD_RENUMBER_H
#define SL_HNSW_BUILD_RENUMBER_H

#include "hnsw/graph/index.h"

/* Smaller indexes lie in a second-level cache, in whatever order. */
#define SL_RENUMBER_LEAST 4096u

/* Renumbers all nodes by partition, those of one in breadth-first order from the entry point, where the index has grown
 * enough since that was last done to be worth it: rows, links and visited marks of neighbours then share cache lines
 * and pages. Vectors keep their ids, and stored settings scan as large a share of the vectors as before. `most` is the
 * share of nodes, in sixteenths, that may lie out of order; `threads` learn the partitions, 0: as many as OpenMP gives.
 * The progress, which may be NULL, is asked whether to go on; cancelled, it leaves all as it is. Needs the index for
 * itself, and for a while some 13 bytes a vector of memory and two rows for each partition, besides the 8 that ids of
 * their own take from then on; without that, or for a small index, it leaves all as it is: order is speed. */
void sl_renumber_settle(sl_index *index, size_t most, size_t threads, sl_progress *progress);

#endif
