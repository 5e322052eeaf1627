/* A walk of layer 0 that widens its beam until it has enough allowed candidates. */
#ifndef SL_HNSW_SEARCH_WIDEN_BEAM_H
#define SL_HNSW_SEARCH_WIDEN_BEAM_H

#include "hnsw/search/allowed.h"
#include "hnsw/search/walk.h"

typedef struct sl_beam_params {
    const sl_search_params *search;
    const sl_allowed *allowed;
    size_t k;
    size_t rerank;      /* candidates that will be re-ranked */
    size_t max_ef;      /* the widest beam to try when the search's ef finds too few */
    double share;       /* estimated share of the nodes near the query that are allowed; 1 if unknown */
    int mostly_allowed; /* the filter refuses few nodes of the index */
    sl_range start;     /* nodes where walks start; empty: they start at the end of the descent */
} sl_beam_params;

/* Leaves allowed candidates in the walk's pool, in any order. The walk has its query, and the index is not empty.
 * Returns whether the candidates are enough. */
int sl_widen_beam(sl_walk *walk, const sl_beam_params *params);

#endif
