/* The choice of a node's links among its candidates. */
#ifndef SL_HNSW_BUILD_SELECT_NEIGHBOURS_H
#define SL_HNSW_BUILD_SELECT_NEIGHBOURS_H

#include "hnsw/build/similarity.h"

/* Scratch of one thread: room for `most` candidates and their selection. */
typedef struct sl_selection {
    const sl_graph *graph;
    size_t most;
    uint32_t *candidates; /* candidates, in any order: the caller fills these and `count` */
    size_t candidate_count;
    float *scores;      /* of each candidate against the base */
    float *units;       /* sl_similarity_unit of each of `chosen` */
    uint32_t *selected; /* the selection, best first; copies of the base come last. The base lies before the first */
    size_t selected_count;
    sl_similarity similarity; /* of the vector that candidates are compared with */
} sl_selection;

size_t sl_selection_bytes(const sl_graph *graph, size_t most);
sl_status sl_selection_init(sl_selection *selection, const sl_graph *graph, size_t most);
void sl_selection_free(sl_selection *selection);

/* Selects neighbours by the heuristic of the HNSW paper (Algorithm 4), up to `limit`. From the best candidate on, a
 * candidate is taken unless it is nearer to one already taken than to the base. Under IP the best have the largest
 * inner product, and the angle tells which is nearer: long vectors come first, in all directions. Copies of the base,
 * whose rows are alike to the byte, would push everything else out under that rule. They take no part in it: at most
 * two of them, and at most half of the list, are linked. That chains a set of copies together and leaves the rest of
 * the list to the world outside. */
void sl_select_neighbours(sl_selection *selection, uint32_t base, size_t limit);

#endif
