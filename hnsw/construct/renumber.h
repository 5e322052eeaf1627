/* Gives nodes new numbers, so that near nodes lie together (as Gorder does, Wei et al., 2016). */
#ifndef SL_HNSW_CONSTRUCT_RENUMBER_H
#define SL_HNSW_CONSTRUCT_RENUMBER_H

#include "hnsw/graph/index.h"

/* A smaller index fits a second-level cache in any order. */
#define SL_RENUMBER_LEAST 4096u

/*
 * Renumbers all nodes if enough are new since the last time: by partition, and within one breadth first from the entry
 * point.
 *
 * Rows, links and visited marks of neighbours then share cache lines and pages. Vectors keep their ids, and stored
 * settings scan the same share of the vectors as before.
 *
 * Parameters: `most`, the share of nodes, in sixteenths, that may be out of order. `threads` learn the partitions; 0:
 * OpenMP's number. `progress` may be NULL; cancelled, it leaves everything unchanged.
 *
 * Memory: some 13 bytes a vector and two rows a partition, for the call. From then on ids take 8 bytes each. Without
 * that memory, or for a small index, nothing changes, since the order matters only for speed. Threads: no other call on
 * the index meanwhile.
 */
void sl_renumber_settle(sl_index *index, size_t most, size_t threads, sl_progress *progress);

/* Counts the bytes that sl_renumber_settle takes meanwhile, with those of the new ids. `graph` needs no arrays. */
sl_status sl_renumber_bytes(const sl_graph *graph, size_t threads, size_t *bytes);

#endif
