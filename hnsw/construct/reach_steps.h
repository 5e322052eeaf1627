/* Finds the nodes that links don't reach from the entry point, some lists at a time. The index may change between two
 * steps, if each change keeps reachable what was: then a node that was reached stays so. A node that is not found
 * reached may be reachable by now. */
#ifndef SL_HNSW_CONSTRUCT_REACH_STEPS_H
#define SL_HNSW_CONSTRUCT_REACH_STEPS_H

#include "hnsw/graph/index.h"

typedef struct sl_reach_steps {
    uint64_t *reached, *followed; /* by node: it is reached; its list was read, too */
    size_t n, word;               /* nodes at the beginning; the word that the next step goes on with */
    int again;                    /* 1: nodes before `word` were reached whose lists are to be read */
} sl_reach_steps;

/* Errors: SL_ENOMEM; nothing stays allocated. */
sl_status sl_reach_steps_begin(sl_reach_steps *steps, const sl_graph *graph);
void sl_reach_steps_free(sl_reach_steps *steps, const sl_graph *graph);
/* Reads up to *lists lists, and subtracts them. Returns whether all that are reached were read. */
int sl_reach_steps_go(sl_reach_steps *steps, const sl_graph *graph, size_t *lists);
/* Returns the next node from `from` on that is not reached, or `n`. */
size_t sl_reach_steps_missing(const sl_reach_steps *steps, size_t from);

#endif
