#include "hnsw/walk.h"

#include "base/prefetch.h"

enum { PREFETCH_LINES = 4 };

sl_status sl_walk_init(sl_walk *walk, const sl_index *index, size_t max_ef) {
    *walk = (sl_walk){.index = index, .allocator = index->allocator, .max_ef = max_ef};
    const sl_allocator *allocator = &walk->allocator;
    sl_status status;
    void *block;
    size_t covers = index->capacity > index->n ? index->capacity : index->n;
    SL_TRY_GOTO(sl_visited_init(&walk->visited, allocator, covers, 16 * max_ef), fail);
    SL_TRY_GOTO(sl_mem_alloc(allocator, (max_ef + 1) * sizeof(uint64_t), &block), fail);
    walk->pool.keys = block;
    SL_TRY_GOTO(sl_mem_alloc(allocator, 3 * index->m0 * sizeof(uint32_t), &block), fail);
    walk->found[0] = block;
    walk->found[1] = walk->found[0] + index->m0;
    walk->nodes = walk->found[1] + index->m0;
    SL_TRY_GOTO(sl_mem_alloc(allocator, index->m0 * sizeof(float), &block), fail);
    walk->scores = block;
    SL_TRY_GOTO(sl_mem_alloc(allocator, sl_query_size(&index->codec), &walk->query_buffer), fail);
    SL_TRY_GOTO(sl_mem_alloc(allocator, index->codec.dim * sizeof(float), &block), fail);
    walk->floats = block;
    return SL_OK;
fail:
    sl_walk_free(walk);
    return status;
}

void sl_walk_free(sl_walk *walk) {
    const sl_allocator *allocator = &walk->allocator;
    const sl_index *index = walk->index;
    if (!index) return;
    sl_visited_free(&walk->visited, allocator);
    sl_mem_free(allocator, walk->pool.keys, (walk->max_ef + 1) * sizeof(uint64_t));
    sl_mem_free(allocator, walk->found[0], 3 * index->m0 * sizeof(uint32_t));
    sl_mem_free(allocator, walk->scores, index->m0 * sizeof(float));
    sl_mem_free(allocator, walk->query_buffer, sl_query_size(&index->codec));
    sl_mem_free(allocator, walk->floats, index->codec.dim * sizeof(float));
    walk->index = NULL;
}

static inline void prefetch_links(const sl_layer *layer, uint32_t id) {
    if (layer->level == 0) sl_prefetch(sl_layer_links(layer, id), layer->degree * sizeof(uint32_t));
}

/* What a row has beyond these lines the kernel asks for itself, while it scores the row before. */
static inline void prefetch_row(const sl_index *index, uint32_t node) {
    size_t bytes = index->codec.rows.pitch, most = PREFETCH_LINES * SL_PREFETCH_LINE;
    sl_prefetch(sl_row(index, node), bytes < most ? bytes : most);
}

/* The unvisited neighbours of an id, marked, their rows on the way into the cache. Stops at the first word that is no
 * id of the layer: the end of the list, or what a damaged file holds. */
static size_t collect(sl_walk *walk, const sl_layer *layer, uint32_t id, uint32_t *found) {
    const uint32_t *links = sl_layer_links(layer, id);
    size_t count = 0;
    if (!links) return 0;
    sl_visited visited = walk->visited; /* a copy stays in registers */
    for (size_t j = 0; j < layer->degree; j++) {
        uint32_t neighbour = sl_link_load(links + j);
        if (neighbour >= layer->count) break;
        found[count] = neighbour;
        count += !sl_visited_mark(&visited, neighbour);
    }
    walk->expansions++;
    walk->evaluations += count;
    if (layer->level) return count;
    for (size_t j = 0; j < count; j++)
        prefetch_row(layer->index, found[j]);
    return count;
}

/* Scores ids of a layer into walk->scores; slots go by way of their nodes. */
static void score(sl_walk *walk, const sl_layer *layer, const uint32_t *ids, size_t count) {
    const sl_index *index = layer->index;
    const uint32_t *nodes = ids;
    if (layer->level) {
        for (size_t i = 0; i < count; i++) {
            uint32_t node = index->upper.nodes[ids[i]];
            walk->nodes[i] = node < index->n ? node : 0;
        }
        nodes = walk->nodes;
    }
    size_t ahead = layer->level || index->codec.rows.pitch > PREFETCH_LINES * SL_PREFETCH_LINE ? 4 : 0;
    index->kernels->score[index->codec.codes](&index->codec.rows, &walk->query, nodes, count, ahead, walk->scores);
}

uint32_t sl_walk_descend(sl_walk *walk, sl_entry entry, uint32_t level) {
    const sl_index *index = walk->index;
    if (entry.level == 0) return entry.node;
    uint32_t at = entry.slot;
    sl_layer top = sl_layer_at(index, entry.level);
    score(walk, &top, &at, 1);
    float best = walk->scores[0];
    walk->evaluations++;
    for (uint32_t l = entry.level; l > level; l--) {
        sl_layer layer = sl_layer_at(index, l);
        for (uint32_t from = SL_NONE; from != at;) {
            from = at;
            const uint32_t *links = sl_layer_links(&layer, at);
            size_t count = 0;
            while (links && count < layer.degree) {
                uint32_t slot = sl_link_load(links + count);
                if (slot >= layer.count) break;
                walk->found[0][count++] = slot;
            }
            score(walk, &layer, walk->found[0], count);
            walk->evaluations += count;
            for (size_t i = 0; i < count; i++)
                if (walk->scores[i] > best) {
                    best = walk->scores[i];
                    at = walk->found[0][i];
                }
        }
    }
    return level ? at : index->upper.nodes[at];
}

static void take(sl_walk *walk, const sl_layer *layer, const uint32_t *ids, size_t count) {
    sl_pool *pool = &walk->pool;
    score(walk, layer, ids, count);
    float bound = sl_pool_bound(pool);
    for (size_t i = 0; i < count; i++) {
        if (!(walk->scores[i] > bound)) continue;
        if (!sl_pool_insert(pool, sl_pool_key(walk->scores[i], ids[i]))) continue;
        prefetch_links(layer, ids[i]);
        bound = sl_pool_bound(pool);
    }
}

void sl_walk_layer(sl_walk *walk, uint32_t level, uint32_t start, size_t ef) {
    sl_layer layer = sl_layer_at(walk->index, level);
    sl_visited_clear(&walk->visited);
    sl_pool_start(&walk->pool, ef);
    if (start >= layer.count) return;
    /* The entry point too: reachability is proved from there, and links lead one way. */
    uint32_t entry = level ? start : sl_entry_get(walk->index).node;
    size_t seeds = 0;
    walk->found[0][seeds++] = start;
    (void)sl_visited_mark(&walk->visited, start);
    if (entry < layer.count && !sl_visited_mark(&walk->visited, entry)) walk->found[0][seeds++] = entry;
    walk->evaluations += seeds;
    take(walk, &layer, walk->found[0], seeds);

    /* Three steps, each a turn behind the one before, so that what a step reads was asked for a turn ago: a candidate
     * is chosen and its links asked for; the links of the one chosen before are read and the rows they lead to asked
     * for; the rows asked for before are scored. */
    uint32_t chosen = SL_POOL_NONE;
    size_t waiting = 0;
    for (int turn = 0;; turn ^= 1) {
        uint32_t next = sl_pool_pop(&walk->pool);
        if (next != SL_POOL_NONE) prefetch_links(&layer, next);
        size_t found = chosen != SL_POOL_NONE ? collect(walk, &layer, chosen, walk->found[turn]) : 0;
        if (waiting) take(walk, &layer, walk->found[turn ^ 1], waiting);
        if (next == SL_POOL_NONE && chosen == SL_POOL_NONE && !waiting) break;
        chosen = next;
        waiting = found;
    }
}
