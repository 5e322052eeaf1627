/* The nodes that a search may return. The filter allows them, they aren't deleted, and the callback and the bitmap
 * accept their ids. Walks also cross the other nodes, because those hold the graph together. */
#ifndef SL_HNSW_SEARCH_ALLOWED_H
#define SL_HNSW_SEARCH_ALLOWED_H

#include "hnsw/graph/index.h"
#include "hnsw/search/pool.h"

typedef struct sl_allowed {
    const uint64_t *bits;  /* one bit per node; NULL: all nodes */
    const sl_graph *graph; /* its deleted nodes are not allowed */
    int some_deleted;      /* 0: the graph has no deleted nodes */
    int by_age;            /* 1: nodes that were added after epoch born_by are not allowed */
    uint64_t born_by;
    const uint32_t *nodes; /* the `node_count` nodes whose bits are set, in rising order; NULL: there is no list */
    size_t node_count;
    size_t n;     /* nodes from n on are not allowed */
    size_t count; /* at least the number of allowed nodes; more if bits are set for deleted nodes */
} sl_allowed;

/* Allows all nodes of a graph that are not deleted. */
static inline sl_allowed sl_allowed_all(const sl_graph *graph) {
    return (sl_allowed){
        .graph = graph, .some_deleted = graph->deleted_count != 0, .n = graph->n, .count = sl_undeleted_count(graph)};
}

static inline uint64_t sl_allowed_word(const sl_allowed *allowed, size_t word) {
    uint64_t bits = allowed->bits ? allowed->bits[word] : ~(uint64_t)0;
    if (allowed->some_deleted) bits &= ~sl_deleted_word(allowed->graph, word);
    return allowed->by_age ? bits & ~sl_newer_word(allowed->graph, word, allowed->born_by) : bits;
}

static inline int sl_is_allowed(const sl_allowed *allowed, size_t node) {
    return node < allowed->n && (sl_allowed_word(allowed, node / 64) >> (node % 64) & 1);
}

/* Counts the allowed nodes of a range. */
size_t sl_allowed_count(const sl_allowed *allowed, sl_range range);

/* Lists allowed nodes of a range in rising order, until fewer than 64 places are left. range->first becomes the first
 * node not looked at. Returns the number of nodes listed.
 * Parameters: room: places of `nodes`, more than 64. */
size_t sl_allowed_list(const sl_allowed *allowed, sl_range *range, uint32_t *nodes, size_t room);

/* The same over all allowed nodes. Start with the `range` that sl_allowed_begin returns; it ends empty. */
sl_range sl_allowed_begin(const sl_allowed *allowed);
size_t sl_allowed_next(const sl_allowed *allowed, sl_range *range, uint32_t *nodes, size_t room);

/* Returns whether the search has a callback or a bitmap over ids. */
static inline int sl_has_id_filter(const sl_search_params *params) {
    return params->accept != NULL || params->accept_bits != NULL;
}

/* Returns whether the search, or one query of a batch, has a filter, a callback or a bitmap. */
static inline int sl_is_filtered(const sl_search_params *params) {
    return sl_has_id_filter(params) || params->filter != NULL || params->filters != NULL;
}

/* Returns whether the callback and the bitmap accept an id. */
int sl_accepts_id(const sl_search_params *params, uint64_t id);

/* Returns whether a walk may end by sl_search_params.stop. The stop needs the distance of the k-th best result. It is
 * unknown with a filter, and mostly with many tombstones: see sl_widen_beam. */
static inline int sl_may_stop_early(const sl_graph *graph, const sl_search_params *params) {
    return !sl_is_filtered(params) && !params->group_size && !sl_ids_repeat(graph) &&
           graph->deleted_count - graph->free_count <= graph->n / 64;
}

/* Refuses a call that gives accept_bits_count without a bitmap. Errors: SL_EINVAL. */
sl_status sl_accept_bits_check(const sl_search_params *params);

/* Drops candidates that are not allowed or not accepted; the others keep their order. */
void sl_pool_drop_refused(const sl_graph *graph, const sl_search_params *params, const sl_allowed *allowed,
                          sl_pool *pool);

/* Returns whether a pool has enough allowed candidates for k results as good as those of an unfiltered search. True if
 * kept >= wanted. Also true if kept >= k and the filter dropped at most a quarter of the pool. Parameters: kept:
 * allowed candidates. seen: all candidates of the pool. wanted: candidates that an unfiltered search re-ranks, at least
 * k. */
int sl_has_enough_allowed(size_t kept, size_t seen, size_t k, size_t wanted);

#endif
