/* A buffer of nodes on their way into a walk's pool. It scores them one block at a time. */
#ifndef SL_HNSW_SEARCH_CANDIDATE_BLOCK_H
#define SL_HNSW_SEARCH_CANDIDATE_BLOCK_H

#include "hnsw/search/score_block.h"
#include "hnsw/search/walk.h"

_Static_assert(SL_SCORE_BLOCK <= SL_TURN_IDS, "a block fits the pool's room");

/* Nodes of several ranges share a block, so the rows of the next range are prefetched in time. */
typedef struct sl_candidate_block {
    sl_walk *walk;
    sl_row_scorer scorer;
    uint32_t nodes[2 * SL_SCORE_BLOCK + SL_SCORE_PAD];
    size_t count; /* nodes not scored yet */
} sl_candidate_block;

/* Starts an empty block and an empty pool, which keeps the best `keep`. The walk has its query. */
void sl_candidate_block_start(sl_candidate_block *block, sl_walk *walk, size_t keep);

/* Adds the nodes of a range that are not deleted. */
void sl_candidate_block_add_range(sl_candidate_block *block, sl_range range);

/* Scores the waiting nodes and finishes the pool with the best `keep`: see sl_pool_finish. */
void sl_candidate_block_end(sl_candidate_block *block, size_t keep);

#endif
