/* Which ids a search may return: what the caller's callback and bitmap say, asked of a walk's pool when it has ended.
 * The walk itself goes through whatever lies on its way, since the nodes that may not be returned hold the graph
 * together. */
#ifndef SL_HNSW_SEARCH_FILTER_H
#define SL_HNSW_SEARCH_FILTER_H

#include "hnsw/graph/index.h"
#include "hnsw/search/pool.h"

static inline int sl_filter_given(const sl_search_params *params) {
    return params->accept != NULL || params->accept_bits != NULL;
}

/* Whether a walk may end by sl_search_params.stop. It counts on the distance of the k-th best: with a filter that is
 * not the one that is known, and where more than a few are deleted it mostly is not either, see sl_widen. */
static inline int sl_filter_stops(const sl_index *index, const sl_search_params *params) {
    return !sl_filter_given(params) && index->dead_count <= index->n / 64;
}

/* SL_EINVAL for a bitmap of some ids that is not there. */
sl_status sl_filter_check(const sl_search_params *params);

/* Takes the nodes out of the pool whose ids are not accepted; the others keep their order. */
void sl_filter_pool(const sl_index *index, const sl_search_params *params, sl_pool *pool);

/* The same for nodes that are deleted. */
void sl_filter_undeleted(const sl_index *index, sl_pool *pool);

/* Whether `kept` of a pool of `seen` are enough for k results as good as those of a search without a filter: as many
 * as that would have had to rank (`wanted`, at least k), or k where the filter took away no more than a quarter. */
int sl_filter_enough(size_t kept, size_t seen, size_t k, size_t wanted);

#endif
