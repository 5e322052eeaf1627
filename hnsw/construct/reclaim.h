/* Takes deleted nodes out of the graph, so that adds can use their places again. The work goes on in small steps, as
 * part of later adds and deletes:
 *
 *   choose:  enough nodes are deleted, and no search is left that may find them: they leave. From here on no list gets
 * a link to them
 *
 *   keep:    what links reach over leaving nodes alone gets a link from another node (reach_steps.h). If no list has
 * room for it, it gets one in the sweep
 *
 *   sweep:   each list with a link to a leaving node gets another in its place (IP-DiskANN, arXiv 2502.13826)
 *
 *   prove:   marks what links reach, and links what they do not
 *
 *   wait:    until no search is left that began before the sweep ended; in a file, until a commit has the swept lists
 *
 *   free:    rows, ids and links are wiped; the places are free
 *
 * An add during the sweep may count on a path that the sweep takes away. So between the sweep and the proof, a few
 * nodes may be out of reach. A save or a check in between proves all at once. */
#ifndef SL_HNSW_CONSTRUCT_RECLAIM_H
#define SL_HNSW_CONSTRUCT_RECLAIM_H

#include "hnsw/graph/index.h"

/* Goes on by about as much as `changed` added nodes and earlier deletes owe. Does nothing if memory is short, or in
 * persistent memory that is written directly. Threads: the caller has the index for a change; searches go on. */
void sl_reclaim_step(sl_index *index, size_t changed);
/* Goes on until no deleted node is left in the graph, or until searches hold the work up. Returns whether it ended. */
int sl_reclaim_run(sl_index *index);
/* Goes on by up to `lists` lists, and begins if anything is deleted. *waits: 1: it waits for searches.
 * Errors: SL_ENOMEM. */
sl_status sl_reclaim_some(sl_index *index, size_t lists, int *waits);
/* Goes on with a sweep that has begun, up to its proof, by up to `lists` lists. Threads: as sl_reclaim_step. */
void sl_reclaim_prove(sl_index *index, size_t lists);
/* Frees the leaving nodes that no list names any more, if no search may meet one. Threads: as sl_reclaim_step. */
void sl_reclaim_free_swept(sl_index *index);
/* Counts the nodes still in the graph that were deleted up to an epoch. An entry point that has to stay does not count.
 */
size_t sl_reclaim_left(const sl_index *index, uint64_t until);
/* Ends the work where it stands. All deleted nodes stay in the graph, and sl_index.swept keeps that a proof is owed. */
void sl_reclaim_stop(sl_index *index);

#endif
