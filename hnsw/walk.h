/* The walk over a layer that insertion and search share, and the scratch of one thread that it needs. */
#ifndef SL_HNSW_WALK_H
#define SL_HNSW_WALK_H

#include "hnsw/graph.h"
#include "hnsw/pool.h"
#include "hnsw/visited.h"

typedef struct sl_walk {
    const sl_index *index;
    sl_allocator allocator;
    size_t max_ef;
    sl_pool pool;
    sl_visited visited;
    uint32_t *found[2]; /* unvisited neighbours of two expansions, m0 + padding each */
    uint32_t *nodes;    /* their nodes, where ids are slots */
    float *scores;
    void *query_buffer;
    float *floats; /* the query as f32 */
    sl_query_code query;
    float query_norm2;
    size_t evaluations, expansions;
} sl_walk;

/* Scratch for pools of up to max_ef. On failure everything is freed. */
sl_status sl_walk_init(sl_walk *walk, const sl_index *index, size_t max_ef);
void sl_walk_free(sl_walk *walk);

/* Down the layers above `level`, from the entry point to the id on `level` that the greedy walk ends at: a slot, or on
 * level 0 a node. The entry point must stand at or above `level`. */
uint32_t sl_walk_descend(sl_walk *walk, sl_entry entry, uint32_t level);

/* The ef best of a layer that a walk from `start` finds, left in walk->pool, best first. On layer 0 it starts from the
 * entry point as well, so that an ef as large as the index finds all that can be reached from there. */
void sl_walk_layer(sl_walk *walk, uint32_t level, uint32_t start, size_t ef);

#endif
