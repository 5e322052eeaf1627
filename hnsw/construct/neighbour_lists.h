/* Neighbour lists of points, from comparing their leaves. */
#ifndef SL_HNSW_CONSTRUCT_NEIGHBOUR_LISTS_H
#define SL_HNSW_CONSTRUCT_NEIGHBOUR_LISTS_H

#include "hnsw/construct/leaves.h"
#include "hnsw/construct/neighbour.h"

/* Compares the points of each leaf with its targets, and lists the `width` nearest of each point over all leaves. A
 * leaf with a note isn't compared again; each other leaf gets a note. The result depends on the leaves alone. With
 * points->share each rank compares some leaves, and the lists are those of its own points (sl_points_mine). The caller
 * frees, also on failure. Errors: SL_ENOMEM, SL_ECANCELED, SL_ENOSPC, SL_EIO. */
sl_status sl_neighbour_lists_make(sl_neighbour_lists *lists, const sl_points *points, const sl_leaves *leaves,
                                  size_t width);
sl_bytes sl_neighbour_lists_bytes(const sl_points *points, size_t width);

#endif
