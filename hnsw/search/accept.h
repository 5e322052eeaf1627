/* Ids that a search may return: what the caller's callback and bitmap say. They are asked about a walk's pool when the
 * walk has ended. The walk itself passes all nodes, since the nodes that may not be returned hold the graph together.
 */
#ifndef SL_HNSW_SEARCH_ACCEPT_H
#define SL_HNSW_SEARCH_ACCEPT_H

#include "hnsw/search/allowed.h"
#include "hnsw/search/pool.h"

/* Tells whether ids are asked about. */
static inline int sl_accept_late(const sl_search_params *params) {
    return params->accept != NULL || params->accept_bits != NULL;
}

/* Tells whether not every node may be returned, to one query of several at least. */
static inline int sl_accept_given(const sl_search_params *params) {
    return sl_accept_late(params) || params->filter != NULL || params->filters != NULL;
}

/* Asks the callback and the bitmap about an id. */
int sl_accepts(const sl_search_params *params, uint64_t id);

/* Tells whether a walk may end by sl_search_params.stop. The stop relies on the distance of the k-th best. With a
 * filter that distance is not known. With more than a few deleted nodes it mostly is not known either: see sl_widen. */
static inline int sl_accept_stops(const sl_graph *graph, const sl_search_params *params) {
    return !sl_accept_given(params) && !params->group_size && !sl_ids_repeat(graph) &&
           graph->dead_count <= graph->n / 64;
}

/* Returns SL_EINVAL for a bitmap that is NULL and counts ids. */
sl_status sl_accept_check(const sl_search_params *params);

/* Takes nodes that are not allowed or not accepted out of the pool; the others keep their order. */
void sl_accept_pool(const sl_graph *graph, const sl_search_params *params, const sl_allowed *allowed, sl_pool *pool);

/* Tells whether `kept` of a pool of `seen` give k results as good as a search without a filter gives. As many as such a
 * search would rank (`wanted`, at least k) do. So do k, where the filter took away a quarter at most. */
int sl_accept_enough(size_t kept, size_t seen, size_t k, size_t wanted);

#endif
