/* The lists of one layer, from the nearest members of each member. */
#ifndef SL_HNSW_BUILD_LAYER_LISTS_H
#define SL_HNSW_BUILD_LAYER_LISTS_H

#include "hnsw/build/neighbour_lists.h"
#include "hnsw/build/select_neighbours.h"

/* A layer under way. */
typedef struct sl_layer_lists {
    const sl_points *points;
    const sl_graph *graph; /* rows that the selection compares */
    size_t degree;         /* of a list */
    size_t reverse_most;   /* members that list a member, and are its candidates too: the nearest of them */
    uint32_t *links;       /* degree entries a member: numbers of members, SL_NONE behind them */
    int has_links;         /* `links` holds lists, whose members are candidates too */
} sl_layer_lists;

/* Chooses each member's list among its near members and the nearest of those that it is near to, all at once: choosing
 * in two turns takes a fifth more evaluations at recall 0.99. Links then go back, and lists that these overfill are
 * chosen anew. The result depends on `near` alone. Errors: SL_ENOMEM, SL_ECANCELED. */
sl_status sl_layer_lists_make(sl_layer_lists *lists, const sl_neighbour_lists *neighbours);
/* Bytes that making them takes for a while, of near members of so wide lists. `links` is not asked for. */
size_t sl_layer_lists_bytes(const sl_layer_lists *lists, size_t width);

#endif
