#include "hnsw/search/candidate_block.h"

#include <string.h>

enum { AHEAD = 32, ROOM = 2 * SL_SCORE_BLOCK };

void sl_candidate_block_start(sl_candidate_block *block, sl_walk *walk, size_t keep) {
    block->walk = walk;
    block->scorer = sl_row_scorer_of(walk->graph->kernels, walk->codec, &walk->query, AHEAD);
    block->count = 0;
    memset(block->nodes, 0, sizeof block->nodes);
    sl_pool_start(&walk->pool, keep, 0);
}

/* Scores the first block of the waiting nodes. */
static void score_first_block(sl_candidate_block *block) {
    sl_walk *walk = block->walk;
    uint32_t *nodes = block->nodes;
    size_t count = block->count < SL_SCORE_BLOCK ? block->count : SL_SCORE_BLOCK, left = block->count - count;
    float scores[SL_SCORE_BLOCK + SL_SCORE_PAD];
    sl_score_block(&block->scorer, nodes, count, block->count, scores);
    sl_pool_offer(&walk->pool, scores, nodes, count);
    walk->evaluations += count;
    memmove(nodes, nodes + count, left * sizeof *nodes);
    block->count = left;
}

/* Drops deleted nodes from place `first` on. */
static void drop_deleted(sl_candidate_block *block, const sl_graph *graph, size_t first) {
    uint32_t *nodes = block->nodes;
    size_t kept = first;
    for (size_t i = first; i < block->count; i++) {
        uint32_t node = nodes[i];
        nodes[kept] = node;
        kept += !sl_is_deleted(graph, node);
    }
    block->count = kept;
}

void sl_candidate_block_add_range(sl_candidate_block *block, sl_range range) {
    const sl_graph *graph = block->walk->graph;
    for (size_t first = range.first, some; first < range.end; first += some) {
        size_t before = block->count, room = ROOM - before;
        some = range.end - first < room ? range.end - first : room;
        /* Writes sixteen numbers at a time, also past the range's end. Ranges may be short, and a processor mispredicts
         * the ends of short loops. */
        for (size_t i = 0; i < some; i += 16)
            for (size_t j = 0; j < 16; j++)
                block->nodes[before + i + j] = (uint32_t)(first + i + j);
        block->count += some;
        if (graph->deleted_count) drop_deleted(block, graph, before);
        if (block->count == ROOM) score_first_block(block);
    }
}

void sl_candidate_block_end(sl_candidate_block *block, size_t keep) {
    while (block->count)
        score_first_block(block);
    sl_pool_finish(&block->walk->pool, keep);
}
