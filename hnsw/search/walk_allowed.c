#include "hnsw/search/walk_allowed.h"

#include "hnsw/search/score_block.h"

#include <string.h>

/* Where fewer than a quarter of a node's links lead to allowed nodes, the walk looks two links far until it has found
 * as many. */
enum { FEW = 4 };
_Static_assert(SL_TURN_WIDTH *SL_MAX_M * 2 / FEW <= SL_TURN_EXTRA * SL_MAX_M, "room for what two links lead to");

/* The walk keeps so many candidates for each of ef, up to MOST. A query far from all allowed nodes gives them nearly
 * equal scores, and needs many. */
enum { POOL_FACTOR = 16, MOST = 4096 };

/* The walk ends when the k best all come from this first part of the scored nodes. */
#define SETTLED 0.25

size_t sl_walk_allowed_pool_ef(size_t ef) {
    size_t deeper = POOL_FACTOR * ef < MOST ? POOL_FACTOR * ef : MOST;
    return deeper > ef ? deeper : ef;
}

/* Ids of a turn, with the room behind them that kernels read. */
enum { TURN = SL_TURN_WIDTH * 2 * SL_MAX_M + SL_TURN_EXTRA * SL_MAX_M + SL_SCORE_PAD };

typedef struct hop_walk {
    sl_walk *walk;
    const sl_allowed *allowed;
    sl_layer layer;
    size_t few;
    sl_top best; /* the k best scores; an id is the node's place in the order of scoring */
    size_t scored;
    uint32_t nodes[2][TURN]; /* nodes found in this turn, and in the last one */
    size_t turn;
    /* Refused neighbours of nodes with few allowed ones, and how many allowed ones are missing. */
    uint32_t refused[TURN];
    size_t refused_count, missing;
} hop_walk;

static const uint32_t *links_of(const hop_walk *h, uint32_t node) {
    h->walk->expansions++;
    return sl_layer_links(&h->layer, node);
}

/* Starts a turn with no nodes. */
static sl_ids begin_turn(hop_walk *h) {
    h->turn ^= 1;
    return (sl_ids){h->nodes[h->turn], 0};
}

/* Adds a node that is allowed and unvisited. */
static void add_if_allowed(const hop_walk *h, uint32_t node, sl_ids *found) {
    sl_visited *visited = &h->walk->visited;
    if (node >= h->layer.count || !sl_is_allowed(h->allowed, node) || sl_visited_mark(visited, node)) return;
    sl_visited_place(visited)[0] = node;
    visited->count++;
    found->ids[found->count++] = node;
}

/* Reads the links of refused neighbours. */
static void add_beyond_refused(hop_walk *h, sl_ids *found) {
    for (size_t i = 0; i < h->refused_count && found->count < h->missing; i++) {
        const uint32_t *links = links_of(h, h->refused[i]);
        for (size_t j = 0; j < h->layer.degree && links[j] != SL_NO_LINK && found->count < h->missing; j++)
            add_if_allowed(h, links[j], found);
    }
    h->refused_count = h->missing = 0;
}

static size_t count_allowed(const hop_walk *h, const uint32_t *links) {
    size_t count = 0;
    for (size_t i = 0; i < h->layer.degree && links[i] != SL_NO_LINK; i++)
        count += (size_t)sl_is_allowed(h->allowed, links[i]);
    return count;
}

/* Reads a node's links. If few of them are allowed, keeps the refused ones, each once, and prefetches their links. */
static void expand_node(hop_walk *h, uint32_t node, sl_ids *found) {
    sl_visited *visited = &h->walk->visited;
    const uint32_t *links = links_of(h, node);
    uint32_t *fresh_ids = sl_visited_place(visited), *allowed = found->ids + found->count,
             *refused = h->refused + h->refused_count;
    size_t fresh = h->walk->graph->kernels->unvisited(visited, links, h->layer.degree, h->layer.count, fresh_ids);
    size_t count = 0, passing = count_allowed(h, links);
    visited->count += fresh;
    /* No branch depends on an allowed bit: half of the predictions would be wrong. */
    for (size_t i = 0; i < fresh; i++) {
        size_t is = (size_t)sl_is_allowed(h->allowed, fresh_ids[i]);
        allowed[count] = fresh_ids[i];
        refused[i - count] = fresh_ids[i];
        count += is;
    }
    found->count += count;
    if (passing >= h->few) return;
    h->missing += h->few - passing;
    h->refused_count += fresh - count;
    for (size_t i = 0; i < fresh - count; i++)
        sl_walk_prefetch_links(&h->layer, refused[i]);
}

/* Scores the last turn's nodes, and notes the k best. */
static void score_and_note(hop_walk *h, sl_ids waiting, sl_ids found) {
    sl_walk *walk = h->walk;
    sl_walk_score(walk, &h->layer, waiting, found);
    double least = h->best.size == h->best.k ? h->best.entries[0].score : -INFINITY;
    for (size_t i = 0; i < waiting.count; i++) {
        if (!((double)walk->scores[i] > least)) continue;
        sl_top_push(&h->best, (double)walk->scores[i], h->scored + i);
        if (h->best.size == h->best.k) least = h->best.entries[0].score;
    }
    h->scored += waiting.count;
    walk->evaluations += found.count;
}

static void score_seeds(hop_walk *h, const uint32_t *seeds, size_t count) {
    sl_ids waiting = begin_turn(h);
    for (size_t i = 0; i < count;) {
        sl_ids found = begin_turn(h);
        for (; i < count && found.count < h->layer.degree; i++)
            add_if_allowed(h, seeds[i], &found);
        score_and_note(h, waiting, found);
        waiting = found;
    }
    score_and_note(h, waiting, begin_turn(h));
}

static int is_settled(const hop_walk *h, size_t ef) {
    size_t late = 0;
    if (h->walk->pool.expanded < ef || h->best.size < h->best.k) return 0;
    for (size_t i = 0; i < h->best.size; i++)
        late += (double)h->best.entries[i].id >= SETTLED * (double)h->scored;
    return !late;
}

void sl_walk_allowed(sl_walk *walk, const sl_allowed *allowed, const uint32_t *seeds, size_t count, size_t ef,
                     size_t keep, sl_top best) {
    hop_walk h;
    h.walk = walk;
    h.allowed = allowed;
    h.layer = sl_layer_in(walk->graph, walk->upper, 0);
    h.few = h.layer.degree / FEW;
    h.best = best;
    h.scored = h.refused_count = h.missing = h.turn = 0;
    memset(h.nodes, 0, sizeof h.nodes);
    sl_visited_clear(&walk->visited);
    sl_pool_start(&walk->pool, sl_walk_allowed_pool_ef(ef), 0);
    score_seeds(&h, seeds, count);

    /* The steps of sl_walk_layer and one more: links of refused nodes are read a turn after their prefetch. */
    uint32_t chosen[SL_TURN_WIDTH], next[SL_TURN_WIDTH];
    size_t expanded = 0;
    for (sl_ids waiting = {NULL, 0};;) {
        size_t next_count = 0;
        int ends = sl_walk_is_over_budget(walk) || is_settled(&h, ef);
        while (!ends && next_count < SL_TURN_WIDTH && (next[next_count] = sl_pool_pop(&walk->pool)) != SL_POOL_NONE)
            sl_walk_prefetch_links(&h.layer, next[next_count++]);
        sl_ids found = begin_turn(&h);
        add_beyond_refused(&h, &found);
        for (size_t i = 0; i < expanded; i++)
            expand_node(&h, chosen[i], &found);
        score_and_note(&h, waiting, found);
        if (!next_count && !expanded && !waiting.count && (ends || !h.refused_count)) break;
        for (size_t i = 0; i < next_count; i++)
            chosen[i] = next[i];
        expanded = next_count;
        waiting = found;
    }
    sl_pool_finish(&walk->pool, keep);
}
