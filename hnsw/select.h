/* Which of a node's candidates become its links. */
#ifndef SL_HNSW_SELECT_H
#define SL_HNSW_SELECT_H

#include "hnsw/graph.h"

/* Scratch of one thread: room for `most` candidates and their selection. */
typedef struct sl_select {
    const sl_index *index;
    size_t most;
    uint32_t *nodes; /* candidates, best first: the caller fills these two and `count` */
    float *scores;   /* of each against the base, as the kernels give them */
    size_t count;
    uint32_t *chosen; /* the selection: positions in `nodes`, best first */
    size_t chosen_count;
    uint32_t *chosen_nodes;
    float *chosen_norms;
    float *pair_scores;
    void *query_buffer;
} sl_select;

sl_status sl_select_init(sl_select *select, const sl_index *index, size_t most);
void sl_select_free(sl_select *select);

/* The neighbour selection heuristic of the HNSW paper (Algorithm 4): from the best candidate on, one is taken unless it
 * is nearer to one already taken than to the base, up to `limit`. base_norm2 is what sl_row_as_query said of the base.
 * Copies of the base (rows alike to the byte) would push everything else out under that rule, so they do not take part
 * in it: at most two of them are linked, which chains a set of copies together and leaves the rest of the list to the
 * world outside. */
void sl_select_run(sl_select *select, uint32_t base, float base_norm2, size_t limit);

#endif
