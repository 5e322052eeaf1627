/* Nodes on their way into a walk's pool: they wait until a block of them can be scored together. */
#ifndef SL_HNSW_SEARCH_CANDIDATE_BLOCK_H
#define SL_HNSW_SEARCH_CANDIDATE_BLOCK_H

#include "hnsw/search/score_block.h"
#include "hnsw/search/walk.h"

_Static_assert(SL_SCORE_BLOCK <= SL_TURN_IDS, "a block fits the pool's room");

/* Nodes of several ranges wait together, so that the rows of the next range are asked for in time. */
typedef struct sl_candidate_block {
    sl_walk *walk;
    sl_row_scorer scorer;
    uint32_t nodes[2 * SL_SCORE_BLOCK + SL_SCORE_PAD];
    size_t count; /* of nodes that wait */
} sl_candidate_block;

/* Begins with no node, and empties the walk's pool, which is to keep the best `keep`. The walk has been asked. */
void sl_candidate_block_start(sl_candidate_block *feed, sl_walk *walk, size_t keep);

/* Takes one node, deleted or not. */
void sl_candidate_block_add(sl_candidate_block *feed, uint32_t node);

/* Takes the nodes of a range that are not deleted. */
void sl_candidate_block_add_range(sl_candidate_block *feed, sl_range range);

/* Scores the nodes that wait, and leaves the best `keep` in the pool's keys: see sl_pool_finish. */
void sl_candidate_block_end(sl_candidate_block *feed, size_t keep);

#endif
