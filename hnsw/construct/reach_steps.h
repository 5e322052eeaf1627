/* Finds the nodes that links don't reach from the entry point, some lists at a time. The index may change between two
 * steps, if each change keeps reachable what was. So what was reached stays reachable. A link that came later may
 * lead to a node that was not reached. */
#ifndef SL_HNSW_CONSTRUCT_REACH_STEPS_H
#define SL_HNSW_CONSTRUCT_REACH_STEPS_H

#include "hnsw/graph/index.h"

typedef struct sl_reach_steps {
    sl_node_set missing;     /* nodes that are not reached */
    sl_node_set todo;        /* nodes that are reached, and whose lists are to be read */
    const sl_node_set *shut; /* nodes whose lists lead nowhere; NULL: none */
    size_t n, at;            /* nodes at the beginning; where the next step looks for one of `todo` first */
} sl_reach_steps;

/* Begins at the entry point. `shut` may be NULL. Errors: SL_ENOMEM; nothing stays allocated. */
sl_status sl_reach_steps_begin(sl_reach_steps *steps, const sl_index *index, const sl_node_set *shut);
void sl_reach_steps_free(sl_reach_steps *steps, const sl_index *index);
/* Reads up to *lists lists, and subtracts them. Returns whether all lists of reached nodes were read. */
int sl_reach_steps_go(sl_reach_steps *steps, const sl_graph *graph, size_t *lists);
/* Notes that a link leads to a node now. */
void sl_reach_steps_add(sl_reach_steps *steps, size_t node);

#endif
