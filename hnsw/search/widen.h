/* Walks that find what a search may return. They go on until enough is left once the rest is taken away. */
#ifndef SL_HNSW_SEARCH_WIDEN_H
#define SL_HNSW_SEARCH_WIDEN_H

#include "hnsw/search/allowed.h"
#include "hnsw/search/walk.h"

typedef struct sl_widening {
    const sl_search_params *params;
    const sl_allowed *allowed;
    size_t k;
    size_t wanted;  /* nodes that will be ranked */
    size_t deepest; /* walks with more than ef go on to this */
    double share;   /* of the nodes near the query that may be returned, as far as known; else 1 */
    int rare;       /* few nodes of the index may not be returned */
    sl_range near;  /* walks start from it; where it is empty they start where the upper layers lead */
} sl_widening;

/* Puts nodes that may be returned into the walk's pool, in any order. The caller has asked the walk. The index is not
 * empty. Returns whether they are enough. */
int sl_widen(sl_walk *walk, const sl_widening *how);

#endif
