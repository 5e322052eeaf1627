/* The nodes that a search may return: those of its filter that are not deleted, and whose ids the caller's callback and
 * bitmap accept. A walk passes all nodes: the nodes that may not be returned hold the graph together. */
#ifndef SL_HNSW_SEARCH_ALLOWED_H
#define SL_HNSW_SEARCH_ALLOWED_H

#include "hnsw/graph/index.h"
#include "hnsw/search/pool.h"

typedef struct sl_allowed {
    const uint64_t *bits;  /* a bit a node; NULL: all */
    const uint64_t *dead;  /* marks of deleted nodes; NULL: none is deleted */
    const uint32_t *nodes; /* the bits that are set, in rising order, `node_count` of them; NULL: they are not listed */
    size_t node_count;
    size_t n;     /* nodes from n on are not allowed */
    size_t count; /* at least as many as are allowed; more where bits are set for deleted nodes */
} sl_allowed;

/* All nodes of a graph that are not deleted. */
static inline sl_allowed sl_allowed_all(const sl_graph *graph) {
    return (sl_allowed){
        .dead = graph->deleted_count ? sl_tombstones(graph) : NULL, .n = graph->n, .count = sl_undeleted_count(graph)};
}

static inline uint64_t sl_allowed_word(const sl_allowed *allowed, size_t word) {
    uint64_t bits = allowed->bits ? allowed->bits[word] : ~(uint64_t)0;
    return allowed->dead ? bits & ~allowed->dead[word] : bits;
}

static inline int sl_is_allowed(const sl_allowed *allowed, size_t node) {
    return node < allowed->n && (sl_allowed_word(allowed, node / 64) >> (node % 64) & 1);
}

/* Counts the allowed nodes of a range. */
size_t sl_allowed_count(const sl_allowed *allowed, sl_range range);

/* Writes allowed nodes of the range, in rising order, at least 64 places before `room` is full. `range->first` becomes
 * the first node that was not looked at. Returns how many were written. `room` is more than 64. */
size_t sl_allowed_list(const sl_allowed *allowed, sl_range *range, uint32_t *nodes, size_t room);

/* The same over all allowed nodes. `range` begins as what sl_allowed_begin returns, and ends empty. */
sl_range sl_allowed_begin(const sl_allowed *allowed);
size_t sl_allowed_next(const sl_allowed *allowed, sl_range *range, uint32_t *nodes, size_t room);

/* Tells whether ids are asked about. */
static inline int sl_has_id_filter(const sl_search_params *params) {
    return params->accept != NULL || params->accept_bits != NULL;
}

/* Tells whether not every node may be returned, to one query of several at least. */
static inline int sl_is_filtered(const sl_search_params *params) {
    return sl_has_id_filter(params) || params->filter != NULL || params->filters != NULL;
}

/* Asks the callback and the bitmap about an id. */
int sl_accepts_id(const sl_search_params *params, uint64_t id);

/* Tells whether a walk may end by sl_search_params.stop. The stop relies on the distance of the k-th best. With a
 * filter that distance is not known. With more than a few deleted nodes it mostly is not known either: see
 * sl_widen_beam. */
static inline int sl_may_stop_early(const sl_graph *graph, const sl_search_params *params) {
    return !sl_is_filtered(params) && !params->group_size && !sl_ids_repeat(graph) &&
           graph->deleted_count <= graph->n / 64;
}

/* Returns SL_EINVAL for a bitmap that is NULL and counts ids. */
sl_status sl_accept_bits_check(const sl_search_params *params);

/* Takes nodes that are not allowed or not accepted out of the pool; the others keep their order. */
void sl_pool_drop_refused(const sl_graph *graph, const sl_search_params *params, const sl_allowed *allowed,
                          sl_pool *pool);

/* Tells whether `kept` of a pool of `seen` give k results as good as a search without a filter gives. As many as such a
 * search would rank (`wanted`, at least k) do. So do k, where the filter took away a quarter at most. */
int sl_has_enough_allowed(size_t kept, size_t seen, size_t k, size_t wanted);

#endif
