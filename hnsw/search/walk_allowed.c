#include "hnsw/search/walk_allowed.h"

#include "hnsw/search/score_block.h"

#include <string.h>

/* The walk looks two links far where fewer than a quarter of a node's links lead to allowed nodes, until it has found
 * as many. */
enum { FEW = 4 };
_Static_assert(SL_TURN_WIDTH *SL_MAX_M * 2 / FEW <= SL_TURN_EXTRA * SL_MAX_M, "room for what two links lead to");

/* The walk keeps so many candidates for each of ef, and up to MOST. Queries far from all that is allowed meet nodes of
 * nearly the same score, and need many. */
enum { DEEPER = 16, MOST = 4096 };

/* The walk ends when the k best were all met among the first part of the nodes that were scored. */
#define SETTLED 0.25

size_t sl_walk_allowed_pool_ef(size_t ef) {
    size_t deeper = DEEPER * ef < MOST ? DEEPER * ef : MOST;
    return deeper > ef ? deeper : ef;
}

/* Ids of a turn, with room behind that kernels read. */
enum { TURN = SL_TURN_WIDTH * 2 * SL_MAX_M + SL_TURN_EXTRA * SL_MAX_M + SL_SCORE_PAD };

typedef struct hopping {
    sl_walk *walk;
    const sl_allowed *allowed;
    sl_layer layer;
    size_t few;
    sl_top best; /* the k best scores; their ids are numbers of nodes in the order of scoring */
    size_t scored;
    uint32_t nodes[2][TURN]; /* what one turn finds, and the turn before found */
    size_t turn;
    /* Neighbours that are not allowed, of nodes with few that are; and how many allowed ones are missing. */
    uint32_t over[TURN];
    size_t over_count, missing;
} hopping;

static const uint32_t *links_of(const hopping *h, uint32_t node) {
    h->walk->expansions++;
    return sl_layer_links(&h->layer, node);
}

/* Begins a turn: nothing is found. */
static sl_ids nothing(hopping *h) {
    h->turn ^= 1;
    return (sl_ids){h->nodes[h->turn], 0};
}

/* Adds a node that is allowed and was not met before. */
static void meet(const hopping *h, uint32_t node, sl_ids *found) {
    sl_visited *visited = &h->walk->visited;
    if (node >= h->layer.count || !sl_is_allowed(h->allowed, node) || sl_visited_mark(visited, node)) return;
    sl_visited_place(visited)[0] = node;
    visited->count++;
    found->ids[found->count++] = node;
}

/* Reads the links of what is not allowed. */
static void look_over(hopping *h, sl_ids *found) {
    for (size_t i = 0; i < h->over_count && found->count < h->missing; i++) {
        const uint32_t *links = links_of(h, h->over[i]);
        for (size_t j = 0; j < h->layer.degree && links[j] != SL_NO_LINK && found->count < h->missing; j++)
            meet(h, links[j], found);
    }
    h->over_count = h->missing = 0;
}

static size_t count_allowed(const hopping *h, const uint32_t *links) {
    size_t count = 0;
    for (size_t i = 0; i < h->layer.degree && links[i] != SL_NO_LINK; i++)
        count += (size_t)sl_is_allowed(h->allowed, links[i]);
    return count;
}

/* Reads a node's links. Those that are not allowed are kept, and their links asked for, where few are allowed. Each
 * node that is not allowed is kept once. */
static void expand(hopping *h, uint32_t node, sl_ids *found) {
    sl_visited *visited = &h->walk->visited;
    const uint32_t *links = links_of(h, node);
    uint32_t *met = sl_visited_place(visited), *allowed = found->ids + found->count, *over = h->over + h->over_count;
    size_t fresh = h->walk->graph->kernels->unvisited(visited, links, h->layer.degree, h->layer.count, met);
    size_t count = 0, passing = count_allowed(h, links);
    visited->count += fresh;
    /* No branch depends on a bit: half of them would be foretold wrongly. */
    for (size_t i = 0; i < fresh; i++) {
        size_t is = (size_t)sl_is_allowed(h->allowed, met[i]);
        allowed[count] = met[i];
        over[i - count] = met[i];
        count += is;
    }
    found->count += count;
    if (passing >= h->few) return;
    h->missing += h->few - passing;
    h->over_count += fresh - count;
    for (size_t i = 0; i < fresh - count; i++)
        sl_walk_prefetch_links(&h->layer, over[i]);
}

/* Scores what was found a turn ago, and notes the k best of it. */
static void take(hopping *h, sl_ids waiting, sl_ids found) {
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

static void begin(hopping *h, const uint32_t *seeds, size_t count) {
    sl_ids waiting = nothing(h);
    for (size_t i = 0; i < count;) {
        sl_ids found = nothing(h);
        for (; i < count && found.count < h->layer.degree; i++)
            meet(h, seeds[i], &found);
        take(h, waiting, found);
        waiting = found;
    }
    take(h, waiting, nothing(h));
}

static int is_settled(const hopping *h, size_t ef) {
    size_t late = 0;
    if (h->walk->pool.expanded < ef || h->best.size < h->best.k) return 0;
    for (size_t i = 0; i < h->best.size; i++)
        late += (double)h->best.entries[i].id >= SETTLED * (double)h->scored;
    return !late;
}

void sl_walk_allowed(sl_walk *walk, const sl_allowed *allowed, const uint32_t *seeds, size_t count, size_t ef,
                     size_t keep, sl_top best) {
    hopping h;
    h.walk = walk;
    h.allowed = allowed;
    h.layer = sl_layer_in(walk->graph, walk->upper, 0);
    h.few = h.layer.degree / FEW;
    h.best = best;
    h.scored = h.over_count = h.missing = h.turn = 0;
    memset(h.nodes, 0, sizeof h.nodes);
    sl_visited_clear(&walk->visited);
    sl_pool_start(&walk->pool, sl_walk_allowed_pool_ef(ef), 0);
    begin(&h, seeds, count);

    /* The same steps as sl_walk_layer has, and one more: links of what is not allowed are read a turn after they were
     * asked for. */
    uint32_t chosen[SL_TURN_WIDTH], next[SL_TURN_WIDTH];
    size_t expanded = 0;
    for (sl_ids waiting = {NULL, 0};;) {
        size_t wide = 0;
        int ends = sl_walk_is_over_budget(walk) || is_settled(&h, ef);
        while (!ends && wide < SL_TURN_WIDTH && (next[wide] = sl_pool_pop(&walk->pool)) != SL_POOL_NONE)
            sl_walk_prefetch_links(&h.layer, next[wide++]);
        sl_ids found = nothing(&h);
        look_over(&h, &found);
        for (size_t i = 0; i < expanded; i++)
            expand(&h, chosen[i], &found);
        take(&h, waiting, found);
        if (!wide && !expanded && !waiting.count && (ends || !h.over_count)) break;
        for (size_t i = 0; i < wide; i++)
            chosen[i] = next[i];
        expanded = wide;
        waiting = found;
    }
    sl_pool_finish(&walk->pool, keep);
}
