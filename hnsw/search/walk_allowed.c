#include "hnsw/search/walk_allowed.h"

#include "hnsw/search/score_block.h"

#include <string.h>

/* If fewer than a quarter of a node's links lead to allowed nodes, the walk looks two links far until it has found a
 * quarter. */
enum { FEW = 4 };
_Static_assert(SL_TURN_WIDTH *SL_MAX_M * 2 / FEW <= SL_TURN_EXTRA * SL_MAX_M, "room for what two links lead to");

/* The walk keeps POOL_FACTOR times ef candidates, up to MOST. If a query is far from all allowed nodes, these have
 * nearly equal scores, and the walk needs many of them. */
enum { POOL_FACTOR = 16, MOST = 4096 };

/* After ef expansions, the walk ends once the k best all come from this first part of the scored nodes. */
#define SETTLED 0.25

size_t sl_walk_allowed_pool_ef(size_t ef) {
    size_t deeper = POOL_FACTOR * ef < MOST ? POOL_FACTOR * ef : MOST;
    return deeper > ef ? deeper : ef;
}

/* The ids of a turn, and the places behind them that kernels read. */
enum { TURN = SL_TURN_WIDTH * 2 * SL_MAX_M + SL_TURN_EXTRA * SL_MAX_M + SL_SCORE_PAD };

typedef struct hop_walk {
    sl_walk *walk;
    const sl_allowed *allowed;
    sl_layer layer;
    size_t few;
    sl_top best; /* the k best scores; an entry's id says as which node, in order, it was scored */
    size_t scored;
    uint32_t nodes[2][TURN]; /* nodes found in this turn, and in the last one */
    size_t turn;
    /* Refused neighbours of nodes with too few allowed neighbours, and how many allowed ones these nodes lack. */
    uint32_t refused[TURN];
    size_t refused_count, missing;
} hop_walk;

static const uint32_t *links_of(const hop_walk *hops, uint32_t node) {
    hops->walk->expansions++;
    return sl_layer_links(&hops->layer, node);
}

/* Starts a turn with no nodes. */
static sl_ids begin_turn(hop_walk *hops) {
    hops->turn ^= 1;
    return (sl_ids){hops->nodes[hops->turn], 0};
}

/* Adds a node that is allowed and unvisited. */
static void add_if_allowed(const hop_walk *hops, uint32_t node, sl_ids *found) {
    sl_visited *visited = &hops->walk->visited;
    if (node >= hops->layer.count || !sl_is_allowed(hops->allowed, node) || sl_visited_mark(visited, node)) return;
    sl_visited_place(visited)[0] = node;
    visited->count++;
    found->ids[found->count++] = node;
}

/* Reads the links of refused neighbours. */
static void add_beyond_refused(hop_walk *hops, sl_ids *found) {
    for (size_t i = 0; i < hops->refused_count && found->count < hops->missing; i++) {
        const uint32_t *links = links_of(hops, hops->refused[i]);
        for (size_t j = 0; j < hops->layer.degree && links[j] != SL_NO_LINK && found->count < hops->missing; j++)
            add_if_allowed(hops, links[j], found);
    }
    hops->refused_count = hops->missing = 0;
}

static size_t count_allowed(const hop_walk *hops, const uint32_t *links) {
    size_t count = 0;
    for (size_t i = 0; i < hops->layer.degree && links[i] != SL_NO_LINK; i++)
        count += (size_t)sl_is_allowed(hops->allowed, links[i]);
    return count;
}

/* Reads a node's links. If few of them are allowed, keeps the refused ones, each once, and prefetches their links. */
static void expand_node(hop_walk *hops, uint32_t node, sl_ids *found) {
    sl_visited *visited = &hops->walk->visited;
    const uint32_t *links = links_of(hops, node);
    uint32_t *fresh_ids = sl_visited_place(visited), *allowed = found->ids + found->count,
             *refused = hops->refused + hops->refused_count;
    size_t fresh =
        hops->walk->graph->kernels->unvisited(visited, links, hops->layer.degree, hops->layer.count, fresh_ids);
    size_t count = 0, passing = count_allowed(hops, links);
    visited->count += fresh;
    /* No branch depends on an allowed bit: half of the predictions would be wrong. */
    for (size_t i = 0; i < fresh; i++) {
        size_t is = (size_t)sl_is_allowed(hops->allowed, fresh_ids[i]);
        allowed[count] = fresh_ids[i];
        refused[i - count] = fresh_ids[i];
        count += is;
    }
    found->count += count;
    if (passing >= hops->few) return;
    hops->missing += hops->few - passing;
    hops->refused_count += fresh - count;
    for (size_t i = 0; i < fresh - count; i++)
        sl_walk_prefetch_links(&hops->layer, refused[i]);
}

/* Scores the last turn's nodes, and notes the k best. */
static void score_and_note(hop_walk *hops, sl_ids waiting, sl_ids found) {
    sl_walk *walk = hops->walk;
    sl_walk_score(walk, &hops->layer, waiting, found);
    double least = hops->best.size == hops->best.k ? hops->best.entries[0].score : -INFINITY;
    for (size_t i = 0; i < waiting.count; i++) {
        if (!((double)walk->scores[i] > least)) continue;
        sl_top_push(&hops->best, (double)walk->scores[i], hops->scored + i);
        if (hops->best.size == hops->best.k) least = hops->best.entries[0].score;
    }
    hops->scored += waiting.count;
    walk->evaluations += found.count;
}

static void score_seeds(hop_walk *hops, const uint32_t *seeds, size_t count) {
    sl_ids waiting = begin_turn(hops);
    for (size_t i = 0; i < count;) {
        sl_ids found = begin_turn(hops);
        for (; i < count && found.count < hops->layer.degree; i++)
            add_if_allowed(hops, seeds[i], &found);
        score_and_note(hops, waiting, found);
        waiting = found;
    }
    score_and_note(hops, waiting, begin_turn(hops));
}

static int is_settled(const hop_walk *hops, size_t ef) {
    size_t late = 0;
    if (hops->walk->pool.expanded < ef || hops->best.size < hops->best.k) return 0;
    for (size_t i = 0; i < hops->best.size; i++)
        late += (double)hops->best.entries[i].id >= SETTLED * (double)hops->scored;
    return !late;
}

void sl_walk_allowed(sl_walk *walk, const sl_allowed *allowed, const uint32_t *seeds, size_t count, size_t ef,
                     size_t keep, sl_top best) {
    hop_walk hops;
    hops.walk = walk;
    hops.allowed = allowed;
    hops.layer = sl_layer_in(walk->graph, walk->upper, 0);
    hops.few = hops.layer.degree / FEW;
    hops.best = best;
    hops.scored = hops.refused_count = hops.missing = hops.turn = 0;
    memset(hops.nodes, 0, sizeof hops.nodes);
    sl_visited_clear(&walk->visited);
    sl_pool_start(&walk->pool, sl_walk_allowed_pool_ef(ef), 0);
    score_seeds(&hops, seeds, count);

    /* The steps of sl_walk_layer and one more: links of refused nodes are read a turn after their prefetch. */
    uint32_t chosen[SL_TURN_WIDTH], next[SL_TURN_WIDTH];
    size_t expanded = 0;
    for (sl_ids waiting = {NULL, 0};;) {
        size_t next_count = 0;
        int ends = sl_walk_is_over_budget(walk) || is_settled(&hops, ef);
        while (!ends && next_count < SL_TURN_WIDTH && (next[next_count] = sl_pool_pop(&walk->pool)) != SL_POOL_NONE)
            sl_walk_prefetch_links(&hops.layer, next[next_count++]);
        sl_ids found = begin_turn(&hops);
        add_beyond_refused(&hops, &found);
        for (size_t i = 0; i < expanded; i++)
            expand_node(&hops, chosen[i], &found);
        score_and_note(&hops, waiting, found);
        if (!next_count && !expanded && !waiting.count && (ends || !hops.refused_count)) break;
        for (size_t i = 0; i < next_count; i++)
            chosen[i] = next[i];
        expanded = next_count;
        waiting = found;
    }
    sl_pool_finish(&walk->pool, keep);
}
