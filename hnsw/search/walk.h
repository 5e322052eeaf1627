/* The walk over a layer that insertion and search share, and the scratch of one thread that it needs. */
#ifndef SL_HNSW_SEARCH_WALK_H
#define SL_HNSW_SEARCH_WALK_H

#include "hnsw/graph/index.h"
#include "hnsw/search/pool.h"

typedef struct sl_walk {
    const sl_index *index;
    const sl_upper *upper;  /* that the walk goes down: the index's own, unless somebody gives it a copy */
    const sl_codec *walked; /* whose rows it scores: likewise */
    sl_allocator allocator;
    size_t max_ef;
    size_t depth; /* what the pool has room for: max_ef, or more since sl_walk_deepen */
    sl_pool pool;
    sl_visited visited;
    /* Of one turn, the lists of all candidates that are expanded at once and some more. */
    uint32_t *nodes; /* of ids that are slots */
    float *scores;
    uint32_t *slots; /* of an upper layer's list */
    void *query_buffer;
    float *floats; /* the query as f32, and as much again for what is left of it */
    sl_query_code query;
    sl_query4 query4; /* of I4 codes, and of floats that coarse rows stand for */
    float query_norm2;
    float origin; /* the walk's score of what is at distance 0, under IP of a product of 0 */
    /* When walks may end early: a candidate more than 1 + stop times as far as the near-th best, or the
     * SL_NEAR-th; 0: they do not. */
    float stop;
    size_t near;
    size_t evaluations, expansions;
} sl_walk;

/* Scratch for pools of up to max_ef. On failure everything is freed. */
sl_status sl_walk_init(sl_walk *walk, const sl_index *index, size_t max_ef);
void sl_walk_free(sl_walk *walk);

/* A pool for walks with an ef up to this, or twice what there was, in place of the one there is and what it holds; on
 * failure nothing is changed. Those who walk among deleted nodes need it; it stays, so that they need it seldom. */
sl_status sl_walk_deepen(sl_walk *walk, size_t depth);

/* The codec of the index's codes, with its rows where the walk reads them. */
static inline const sl_codec *sl_walk_codec(const sl_walk *walk) {
    const sl_index *index = walk->index;
    return index->walk_codec == &index->codec ? walk->walked : &index->codec;
}

/* What the walks are for: a vector that has passed sl_vector_check, or a stored one. A vector is brought into the form
 * that walks want, or that in which their results are ranked, or both; where there are no coarse rows the two are one,
 * and it is made whatever is asked for. */
#define SL_ASK_WALK 1u
#define SL_ASK_RANK 2u
#define SL_ASK_BOTH (SL_ASK_WALK | SL_ASK_RANK)
void sl_walk_ask(sl_walk *walk, const void *vector, sl_dtype dtype, unsigned what);
void sl_walk_ask_node(sl_walk *walk, uint32_t node);

/* The same vector, over the centroids of partitions: in 8 bits, which ranking has where it takes more. The last that
 * was asked was this one, for ranking too. `buffer`, `floats`: as sl_partition_ask has them. */
void sl_walk_ask_partitions(sl_walk *walk, const void *vector, sl_dtype dtype, void *buffer, float *floats,
                            sl_query_code *out);

/* The one id as where a walk of its layer starts. */
static inline sl_range sl_walk_from(uint32_t id) {
    return (sl_range){id, (size_t)id + 1};
}

/* Down the layers above `level`, from the entry point to the id on `level` that the greedy walk ends at: a slot, or on
 * level 0 a node. The entry point must stand at or above `level`. */
uint32_t sl_walk_descend(sl_walk *walk, sl_entry entry, uint32_t level);

/* The ef best of a layer that a walk from the ids of `start` finds, left in walk->pool, for sl_pool_finish. On layer 0
 * it starts from the entry point as well, so that an ef as large as the index finds all that can be reached from there.
 */
void sl_walk_layer(sl_walk *walk, uint32_t level, sl_range start, size_t ef);

#endif
