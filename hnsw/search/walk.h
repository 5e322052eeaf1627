/* The walk over a layer that insertion and search share, and the scratch of one thread that it needs. */
#ifndef SL_HNSW_SEARCH_WALK_H
#define SL_HNSW_SEARCH_WALK_H

#include "base/prefetch.h"
#include "distance/codec/encode4.h"
#include "hnsw/graph/entry.h"
#include "hnsw/graph/index.h"
#include "hnsw/search/pool.h"
#include "hnsw/search/query.h"
#include "hnsw/search/range_hits.h"

/* Candidates that are expanded at once. A turn begins by waiting for the end of the turn before, and a second
 * candidate adds no wait. It is chosen before the first one's neighbours are known, which costs a few evaluations. */
enum { SL_TURN_WIDTH = 2 };
/* Room for ids of a turn beside the lists of what is expanded, for each of SL_MAX_M. */
enum { SL_TURN_EXTRA = 1 };

typedef struct sl_ids {
    uint32_t *ids;
    size_t count;
} sl_ids;

typedef struct sl_walk {
    const sl_graph *graph;
    const sl_upper
        *upper; /* upper layers that the walk descends: the index's own, unless the caller puts a copy here */
    const sl_codec *codec; /* codec whose rows the walk scores; the caller may put a copy here too */
    sl_allocator allocator;
    size_t max_ef;
    size_t pool_ef; /* ef that the pool has room for: max_ef, or more since sl_walk_reserve */
    sl_pool pool;
    sl_visited visited;
    /* Room for one turn: for the lists of all candidates that are expanded together, and some more. */
    uint32_t *nodes; /* nodes of ids that are slots */
    float *scores;
    uint32_t *slots; /* of an upper layer's list */
    void *query_buffer;
    float *floats; /* the query as f32, and as much scratch behind it */
    sl_query_code query;
    sl_query4 query4; /* of I4 codes, and of floats with coarse rows */
    float query_norm2;
    float origin; /* the walk's score of a vector at distance 0; under IP of one whose product is 0 */
    /* A walk ends early at a candidate more than 1 + stop times as far as the stop_rank-th best. The SL_BEST_SCORES-th
     * best counts where `stop_rank` is larger. 0: walks do not end early. */
    float stop;
    size_t stop_rank;
    sl_range_hits *range_hits; /* takes all that the walk scores, unless it is NULL */
    size_t evaluations, expansions;
    size_t max_evaluations; /* evaluations from which on nothing more is expanded; SIZE_MAX: no bound */
} sl_walk;

/* Makes scratch for walks with an ef up to max_ef. On failure everything is freed. */
sl_status sl_walk_init(sl_walk *walk, const sl_graph *graph, size_t max_ef);
void sl_walk_free(sl_walk *walk);

/* Tells whether the walk may make no more evaluations. */
static inline int sl_walk_is_over_budget(const sl_walk *walk) {
    return walk->evaluations >= walk->max_evaluations;
}

/* Puts a deeper pool in place of the pool and what it holds. The new pool is for walks with an ef up to `depth`, or
 * twice the depth there was. On failure nothing is changed. Walks among deleted nodes need deeper pools; the pool
 * stays, so that they seldom need one. */
sl_status sl_walk_reserve(sl_walk *walk, size_t depth);

/* Makes room for twice as many candidates. Those there are stay. On failure nothing is changed. */
sl_status sl_walk_grow_pool(sl_walk *walk);

/* Returns the codec of the index's codes, with its rows where the walk reads them. */
static inline const sl_codec *sl_walk_index_codec(const sl_walk *walk) {
    const sl_graph *graph = walk->graph;
    return sl_codec_of_walks(graph) == &graph->codec ? walk->codec : &graph->codec;
}

/* sl_walk_set_query takes a vector that has passed sl_vector_check; sl_walk_set_query_node takes a stored one, of this
 * index or of one with the same codecs. `what` says which forms of the vector are made: for walks, for ranking their
 * results, or both. Without coarse rows the two forms are one, and it is always made. */
#define SL_ENCODE_WALK   1u
#define SL_ENCODE_RERANK 2u
#define SL_ENCODE_BOTH   (SL_ENCODE_WALK | SL_ENCODE_RERANK)
void sl_walk_set_query(sl_walk *walk, sl_query query, unsigned what);
void sl_walk_set_query_node(sl_walk *walk, const sl_graph *of, uint32_t node);

/* Encodes the vector that was asked last, for ranking too, over the centroids of partitions. The code has 8 bits,
 * which are part of the ranking form where that has more. `buffer`, `floats`: as sl_partition_encode_query has them. */
void sl_walk_partition_query(sl_walk *walk, sl_query query, void *buffer, float *floats, sl_query_code *out);

/* Returns one id as the range that a walk of its layer starts from. */
static inline sl_range sl_range_of_id(uint32_t id) {
    return (sl_range){id, (size_t)id + 1};
}

/* Descends the layers above `level` from the entry point. Returns the id on `level` that the greedy walk ends at: a
 * slot, or a node on level 0. The entry point stands at or above `level`. */
uint32_t sl_walk_descend(sl_walk *walk, sl_entry entry, uint32_t level);

/* Walks a layer from the ids of `start` and leaves the ef best that it finds in walk->pool, for sl_pool_finish. On
 * layer 0 the walk starts from the entry point too. An ef as large as the index then finds all that can be reached
 * from there. */
void sl_walk_layer(sl_walk *walk, uint32_t level, sl_range start, size_t ef);

/* The work that a walk has under way between two turns. */
typedef struct sl_walk_turn {
    uint32_t chosen[SL_TURN_WIDTH]; /* candidates whose links the next turn reads */
    size_t count;
    sl_ids waiting; /* ids that the next turn scores */
} sl_walk_turn;

/* A walk of layer 0 whose candidates the caller chooses, turn by turn. sl_walk_begin does what sl_walk_layer does
 * before its first turn. The caller keeps room in the pool for all that the next two turns may bring. */
void sl_walk_begin(sl_walk *walk, sl_range start, size_t ef, sl_walk_turn *turn);

/* Takes one turn. `next`: the candidates that the caller has chosen for the turn after, SL_TURN_WIDTH at most.
 * Returns 0 where nothing is under way. */
int sl_walk_take_turn(sl_walk *walk, sl_walk_turn *turn, const uint32_t *next, size_t wide);

/* Goes on over layer 0 from the nodes of walk->range_hits, the first first, and so reaches further nodes above its
 * floor. Nodes that the last walk has seen are not scored again. Ends when all are expanded, or soon after the within
 * has `count` nodes or the walk `evaluations`. */
void sl_walk_range_hits(sl_walk *walk, size_t count, size_t evaluations);
/* Asks for a node's links on layer 0. */
static inline void sl_walk_prefetch_links(const sl_layer *layer, uint32_t id) {
    if (layer->level == 0) sl_prefetch(sl_layer_links(layer, id), layer->degree * sizeof(uint32_t));
}

/* A step of a walk. Scores `found` into walk->scores and offers it to the pool. Meanwhile it asks for the rows of
 * `next`, on layer 0. */
void sl_walk_score(sl_walk *walk, const sl_layer *layer, sl_ids found, sl_ids next);

#endif
