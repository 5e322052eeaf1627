/* The choice of a node's links among its candidates. */
#ifndef SL_HNSW_BUILD_SELECT_H
#define SL_HNSW_BUILD_SELECT_H

#include "hnsw/build/nearness.h"

/* Scratch of one thread: room for `most` candidates and their selection. */
typedef struct sl_select {
    const sl_graph *graph;
    size_t most;
    uint32_t *nodes; /* candidates, in any order: the caller fills these and `count` */
    size_t count;
    float *scores;    /* of each candidate against the base */
    float *units;     /* sl_nearness_unit of each of `chosen` */
    uint32_t *chosen; /* the selection, best first; copies of the base come last. The base lies before the first */
    size_t chosen_count;
    sl_nearness nearness; /* of the vector that candidates are compared with */
} sl_select;

size_t sl_select_bytes(const sl_graph *graph, size_t most);
sl_status sl_select_init(sl_select *select, const sl_graph *graph, size_t most);
void sl_select_free(sl_select *select);

/* Selects neighbours by the heuristic of the HNSW paper (Algorithm 4), up to `limit`. From the best candidate on, a
 * candidate is taken unless it is nearer to one already taken than to the base. Under IP the best have the largest
 * inner product, and the angle tells which is nearer: long vectors come first, in all directions. Copies of the base,
 * whose rows are alike to the byte, would push everything else out under that rule. They take no part in it: at most
 * two of them, and at most half of the list, are linked. That chains a set of copies together and leaves the rest of
 * the list to the world outside. */
void sl_select_run(sl_select *select, uint32_t base, size_t limit);

#endif
