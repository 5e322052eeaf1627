/* The walk: a beam search over one layer (Algorithm 2, SEARCH-LAYER, of arXiv 1603.09320), with one thread's scratch.
 * Searches and inserts use it. */
#ifndef SL_HNSW_SEARCH_WALK_H
#define SL_HNSW_SEARCH_WALK_H

#include "base/prefetch.h"
#include "distance/codec/encode4.h"
#include "hnsw/graph/entry.h"
#include "hnsw/graph/index.h"
#include "hnsw/search/pool.h"
#include "hnsw/search/query.h"
#include "hnsw/search/range_hits.h"

/* Candidates that a turn expands together. Each turn waits for the memory of the turn before, and a second candidate
 * adds no wait. It is chosen before the neighbours of the first are scored, which costs a few more evaluations. */
enum { SL_TURN_WIDTH = 2 };
/* Room for ids of a turn besides the links of its candidates, in units of SL_MAX_M. */
enum { SL_TURN_EXTRA = 1 };

typedef struct sl_ids {
    uint32_t *ids;
    size_t count;
} sl_ids;

typedef struct sl_walk {
    const sl_graph *graph;
    const sl_upper
        *upper; /* upper layers that the walk descends: the index's own, or a copy that the caller puts here */
    const sl_codec *codec; /* codec of the rows that the walk scores; the caller may put a copy's here */
    sl_allocator allocator;
    size_t max_ef;
    size_t pool_ef; /* ef that the pool has room for: max_ef, or more after sl_walk_reserve */
    sl_pool pool;
    sl_visited visited;
    /* Room for one turn: the links of all its candidates, and some more. */
    uint32_t *nodes; /* nodes of slots of an upper layer */
    float *scores;
    uint32_t *slots; /* slots of an upper layer's list */
    void *query_buffer;
    float *floats; /* the query as f32; behind it as much scratch */
    sl_query_code query;
    sl_query4 query4; /* for I4 codes, and for floats with coarse rows */
    float query_norm2;
    float origin; /* the walk's score of a vector at distance 0 from the query; under IP, of a vector whose product with
                     it is 0 */
    /* The walk ends at a candidate that is more than 1 + stop times as far away as the stop_rank-th best one. A
     * stop_rank above SL_BEST_SCORES counts as SL_BEST_SCORES. stop 0: no early end. */
    float stop;
    size_t stop_rank;
    /* The walk also ends at a candidate that scores below `bound`, once it has expanded `bound_after` candidates. The
     * bound comes from a search of another index. -INFINITY: no bound. */
    float bound;
    size_t bound_after;
    int notes_beam;            /* nonzero: sl_widen_beam sets beam_score */
    float beam_score;          /* of the last walk: the score below which it ended; -INFINITY: nothing ended it */
    sl_range_hits *range_hits; /* gets the scored nodes above its threshold; NULL: no range search */
    size_t evaluations, expansions;
    size_t max_evaluations; /* after this many evaluations the walk expands nothing more; SIZE_MAX: no bound */
} sl_walk;

/* Allocates scratch for walks with an ef up to max_ef. On failure nothing stays allocated. Errors: SL_ENOMEM. */
sl_status sl_walk_init(sl_walk *walk, const sl_graph *graph, size_t max_ef);
void sl_walk_free(sl_walk *walk);

/* Returns whether the walk has used up its evaluations. */
static inline int sl_walk_is_over_budget(const sl_walk *walk) {
    return walk->evaluations >= walk->max_evaluations;
}

/* Gives the pool room for an ef of at least `ef`. Its content is lost. The room at least doubles and is kept, so walks
 * among tombstones seldom have to grow it again. On failure nothing changes. Errors: SL_ENOMEM. */
sl_status sl_walk_reserve(sl_walk *walk, size_t ef);

/* Doubles the pool's room and keeps its candidates. On failure nothing changes. Errors: SL_ENOMEM. */
sl_status sl_walk_grow_pool(sl_walk *walk);

/* Returns the codec of the index's codes, with the rows that the walk reads. */
static inline const sl_codec *sl_walk_index_codec(const sl_walk *walk) {
    const sl_graph *graph = walk->graph;
    return sl_codec_of_walks(graph) == &graph->codec ? walk->codec : &graph->codec;
}

/* Encodes the walk's query. The vector has passed sl_vector_check, or it is a stored one of this index or of one with
 * the same codecs.
 * Parameters: forms: SL_ENCODE_WALK for walks, SL_ENCODE_RERANK for re-ranking, or both. Without coarse rows there is
 * one form, which is always made. */
#define SL_ENCODE_WALK   1u
#define SL_ENCODE_RERANK 2u
#define SL_ENCODE_BOTH   (SL_ENCODE_WALK | SL_ENCODE_RERANK)
void sl_walk_set_query(sl_walk *walk, sl_query query, unsigned forms);
void sl_walk_set_query_node(sl_walk *walk, const sl_graph *of, uint32_t node);

/* Encodes the walk's query over the centroids of partitions. Call sl_walk_set_query with SL_ENCODE_RERANK first. The
 * code has 8 bits per element, unless centroids are floats. If the re-ranking code is finer, these are its upper 8
 * bits.
 * Parameters: buffer, floats: as in sl_partition_encode_query. */
void sl_walk_partition_query(sl_walk *walk, sl_query query, void *buffer, float *floats, sl_query_code *out);

/* Returns the range of one id, from which a walk can start. */
static inline sl_range sl_range_of_id(uint32_t id) {
    return (sl_range){id, (size_t)id + 1};
}

/* Descends greedily from the entry point to `level`, which is not above the entry point's. Returns the nearest id found
 * there: a slot, or a node on level 0. */
uint32_t sl_walk_descend(sl_walk *walk, sl_entry entry, uint32_t level);

/* Walks a layer and leaves the candidates in walk->pool; call sl_pool_finish for the ef best. The walk starts from the
 * ids of `start`, and on layer 0 also from the entry point. With an ef as large as the index, it finds all nodes that
 * are reachable from the entry point. */
void sl_walk_layer(sl_walk *walk, uint32_t level, sl_range start, size_t ef);

/* The walk's work that is left over from one turn to the next. */
typedef struct sl_walk_turn {
    uint32_t chosen[SL_TURN_WIDTH]; /* candidates whose links the next turn reads */
    size_t count;
    sl_ids waiting; /* ids that the next turn scores */
} sl_walk_turn;

/* Returns the score below which the walk's stop ends it, after a walk with a stop. -INFINITY: it met fewer than
 * stop_rank nodes. */
float sl_walk_stop_score(const sl_walk *walk);

/* Starts a walk of layer 0 and does all that sl_walk_layer does before its first turn. The caller then chooses the
 * candidates of each turn. It keeps room in the pool for the ids of two turns. */
void sl_walk_begin(sl_walk *walk, sl_range start, size_t ef, sl_walk_turn *turn);

/* Takes one turn. Returns 0 if no work is left.
 * Parameters: next: candidates for the turn after this one. next_count: their number, up to SL_TURN_WIDTH. */
int sl_walk_take_turn(sl_walk *walk, sl_walk_turn *turn, const uint32_t *next, size_t next_count);

/* Continues a range search over layer 0. Expands the hits in walk->range_hits in order of arrival, and adds the nodes
 * that score above their threshold. Skips nodes that the last walk has visited. Ends when every hit is expanded, soon
 * after there are `count` hits, or after `evaluations`. */
void sl_walk_range_hits(sl_walk *walk, size_t count, size_t evaluations);
/* Prefetches a node's links on layer 0. */
static inline void sl_walk_prefetch_links(const sl_layer *layer, uint32_t id) {
    if (layer->level == 0) sl_prefetch(sl_layer_links(layer, id), layer->degree * sizeof(uint32_t));
}

/* Scores the ids of `found` into walk->scores and offers them to the pool. Meanwhile prefetches the rows of `next`, if
 * this is layer 0. */
void sl_walk_score(sl_walk *walk, const sl_layer *layer, sl_ids found, sl_ids next);

#endif
