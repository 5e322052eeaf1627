/* Nodes on their way into a walk's pool: they wait until a block of them can be scored together. */
#ifndef SL_HNSW_SEARCH_FEED_H
#define SL_HNSW_SEARCH_FEED_H

#include "hnsw/search/score_block.h"
#include "hnsw/search/walk.h"

_Static_assert(SL_SCORE_BLOCK <= SL_POOL_TURN, "a block fits the pool's room");

/* Nodes of several ranges wait together, so that the rows of the next range are asked for in time. */
typedef struct sl_feed {
    sl_walk *walk;
    sl_scorer scorer;
    uint32_t nodes[2 * SL_SCORE_BLOCK + SL_SCORE_BEHIND];
    size_t count; /* of nodes that wait */
} sl_feed;

/* Begins with no node, and empties the walk's pool, which is to keep the best `keep`. The walk has been asked. */
void sl_feed_start(sl_feed *feed, sl_walk *walk, size_t keep);

/* Takes one node, deleted or not. */
void sl_feed_node(sl_feed *feed, uint32_t node);

/* Takes the nodes of a range that are not deleted. */
void sl_feed_range(sl_feed *feed, sl_range range);

/* Scores the nodes that wait, and leaves the best `keep` in the pool's keys: see sl_pool_finish. */
void sl_feed_end(sl_feed *feed, size_t keep);

#endif
