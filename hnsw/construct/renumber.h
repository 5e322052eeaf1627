/* Gives nodes new numbers, so that near nodes lie together (as Gorder does, Wei et al., 2016). */
#ifndef SL_HNSW_CONSTRUCT_RENUMBER_H
#define SL_HNSW_CONSTRUCT_RENUMBER_H

#include "hnsw/graph/index.h"

/* Nodes that an index must have to be renumbered. A smaller index fits a second-level cache in any order. */
#define SL_RENUMBER_LEAST 4096u

/* Sixteenths of the places that may be free before an add leaves them out. */
#define SL_MOST_FREE 2u

/*
 * Renumbers all nodes if enough vectors came since the last numbering, at new places or at old ones. The nodes of a
 * partition get consecutive numbers. Within a partition they follow a breadth-first pass from the entry point, or under
 * IP fall in length.
 *
 * Rows, links and visited marks of neighbours then share cache lines and pages. Vectors keep their ids. Stored settings
 * scan the same share of the vectors as before.
 *
 * Parameters: `most`: the call does nothing unless more vectors came than `most` sixteenths of the number of nodes.
 * `threads`: of the k-means; 0: OpenMP's number. `progress` may be NULL; cancelled, it leaves everything unchanged.
 *
 * Memory: some 13 bytes per vector and two rows per partition, during the call. From then on ids take 8 bytes each. If
 * that memory is lacking, or the index is small, nothing changes, since the order matters only for speed. Threads: no
 * other call on the index meanwhile.
 */
void sl_renumber_settle(sl_index *index, size_t most, size_t threads, sl_progress *progress);

/* Leaves free places out of the numbers, if more than `most` sixteenths of the places are free. All else stays in its
 * order. If memory is lacking, nothing changes. Memory and threads: as of sl_renumber_settle. */
void sl_renumber_compact(sl_index *index, size_t most);

/* Sets *bytes to the most that sl_renumber_settle takes during the call, the new ids included. `graph` needs no
 * arrays. */
sl_status sl_renumber_bytes(const sl_graph *graph, size_t threads, size_t *bytes);

#endif
