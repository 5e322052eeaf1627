#include "hnsw/search/candidate_block.h"

#include <string.h>

enum { AHEAD = 32, ROOM = 2 * SL_SCORE_BLOCK };

void sl_candidate_block_start(sl_candidate_block *feed, sl_walk *walk, size_t keep) {
    feed->walk = walk;
    feed->scorer = sl_row_scorer_of(walk->graph->kernels, walk->codec, &walk->query, AHEAD);
    feed->count = 0;
    memset(feed->nodes, 0, sizeof feed->nodes);
    sl_pool_start(&walk->pool, keep, 0);
}

/* Scores the first block of the nodes that wait. */
static void score_first(sl_candidate_block *feed) {
    sl_walk *walk = feed->walk;
    uint32_t *nodes = feed->nodes;
    size_t count = feed->count < SL_SCORE_BLOCK ? feed->count : SL_SCORE_BLOCK, left = feed->count - count;
    float scores[SL_SCORE_BLOCK + SL_SCORE_PAD];
    sl_score_block(&feed->scorer, nodes, count, feed->count, scores);
    sl_pool_offer(&walk->pool, scores, nodes, count);
    walk->evaluations += count;
    memmove(nodes, nodes + count, left * sizeof *nodes);
    feed->count = left;
}

void sl_candidate_block_add(sl_candidate_block *feed, uint32_t node) {
    feed->nodes[feed->count++] = node;
    if (feed->count == ROOM) score_first(feed);
}

/* Takes deleted nodes out of those that wait, from place `first` on. */
static void leave_dead(sl_candidate_block *feed, const uint64_t *dead, size_t first) {
    uint32_t *nodes = feed->nodes;
    size_t kept = first;
    for (size_t i = first; i < feed->count; i++) {
        uint32_t node = nodes[i];
        nodes[kept] = node;
        kept += !sl_has_tombstone(dead, node);
    }
    feed->count = kept;
}

void sl_candidate_block_add_range(sl_candidate_block *feed, sl_range range) {
    const sl_graph *graph = feed->walk->graph;
    for (size_t first = range.first, some; first < range.end; first += some) {
        size_t before = feed->count, room = ROOM - before;
        some = range.end - first < room ? range.end - first : room;
        /* Numbers are written by sixteens, into free places behind them too. Ranges may be short, and a processor does
         * not foresee the ends of short loops. */
        for (size_t i = 0; i < some; i += 16)
            for (size_t j = 0; j < 16; j++)
                feed->nodes[before + i + j] = (uint32_t)(first + i + j);
        feed->count += some;
        if (graph->deleted_count) leave_dead(feed, sl_tombstones(graph), before);
        if (feed->count == ROOM) score_first(feed);
    }
}

void sl_candidate_block_end(sl_candidate_block *feed, size_t keep) {
    while (feed->count)
        score_first(feed);
    sl_pool_finish(&feed->walk->pool, keep);
}
