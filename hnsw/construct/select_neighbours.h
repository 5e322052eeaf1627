/* Selects a node's links among candidates (Algorithm 4, SELECT-NEIGHBORS-HEURISTIC, of arXiv 1603.09320). */
#ifndef SL_HNSW_CONSTRUCT_SELECT_NEIGHBOURS_H
#define SL_HNSW_CONSTRUCT_SELECT_NEIGHBOURS_H

#include "hnsw/construct/similarity.h"

/* One thread's scratch, for up to `most` candidates. */
typedef struct sl_selection {
    const sl_graph *graph;
    size_t most;
    uint32_t *candidates; /* in any order; the caller fills them and `candidate_count` */
    size_t candidate_count;
    float *scores;      /* similarity of each candidate to the base */
    float *units;       /* sl_similarity_unit of each of `selected` */
    uint32_t *selected; /* nodes, best first, duplicates of the base last; selected[-1] is the base */
    size_t selected_count;
    sl_similarity similarity; /* its base is the candidate that is judged now */
} sl_selection;

size_t sl_selection_bytes(const sl_graph *graph, size_t most);
sl_status sl_selection_init(sl_selection *selection, const sl_graph *graph, size_t most);
void sl_selection_free(sl_selection *selection);

/*
 * Selects up to `limit` of the candidates as links of `base`, by Algorithm 4 of arXiv 1603.09320.
 *
 * The call judges candidates best first. It skips a candidate that is nearer to a selected node than to the base. Under
 * IP the best candidate has the largest inner product, but "nearer" compares angles. So long vectors come first, in all
 * directions.
 *
 * Duplicates of the base would push out everything else under that rule, so they have a rule of their own. At most two
 * of them are linked, and at most half a list. Their links chain up all duplicates, and the rest of the list leads
 * elsewhere.
 */
void sl_select_neighbours(sl_selection *selection, uint32_t base, size_t limit);

#endif
