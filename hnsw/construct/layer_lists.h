/* The lists of one layer, from the neighbour lists of its points. */
#ifndef SL_HNSW_CONSTRUCT_LAYER_LISTS_H
#define SL_HNSW_CONSTRUCT_LAYER_LISTS_H

#include "hnsw/construct/neighbour_lists.h"
#include "hnsw/construct/select_neighbours.h"

/* A layer whose lists are made, and its limits. */
typedef struct sl_layer_lists {
    const sl_points *points;
    const sl_graph *graph; /* the rows that the selection compares */
    size_t degree;         /* most links of a list */
    size_t reverse_most;   /* most reverse candidates of a point; the nearest are taken */
    uint32_t *links;       /* `degree` places per point: numbers of points, unused places SL_NONE */
    int has_links;         /* 1: `links` holds lists already, whose points are candidates too */
} sl_layer_lists;

/* Selects each point's links among its neighbours and its reverse candidates, all at once. If the two kinds are
 * selected separately, searches need a fifth more evaluations at recall 0.99. Then the reverse of each link is added,
 * and overfull lists are selected again. The result depends on `neighbours` alone, and on `links` if has_links is set.
 * With points->share each rank selects the lists of its points, and gets all lists in the end.
 * Errors: SL_ENOMEM, SL_ECANCELED. */
sl_status sl_layer_lists_make(sl_layer_lists *lists, const sl_neighbour_lists *neighbours);
/* Bytes that sl_layer_lists_make allocates, for neighbour lists of this width. lists->links isn't read. */
size_t sl_layer_lists_bytes(const sl_layer_lists *lists, size_t width);

#endif
