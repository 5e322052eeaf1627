/* Leaves over ranks: which leaves a rank compares, and how what they gave comes to the owners of the points. */
#ifndef SL_HNSW_CONSTRUCT_LEAF_SHARE_H
#define SL_HNSW_CONSTRUCT_LEAF_SHARE_H

#include "hnsw/construct/leaves.h"
#include "hnsw/construct/neighbour.h"

/* The leaves of a rank, and the points in them. The rank has a list for each of these points while it compares. */
typedef struct sl_leaf_share {
    sl_allocator allocator;
    uint32_t *leaves; /* that the rank compares */
    size_t leaf_count, leaf_room;
    uint32_t *places; /* point -> place of its list; SL_NONE: the point is in none of the rank's leaves */
    size_t n;         /* points of the layer */
    uint32_t *points; /* place -> point, rising */
    size_t place_count, point_room;
} sl_leaf_share;

/*
 * Chooses the rank's leaves among leaves [some.first, some.end). Leaves go to ranks in the order of their middle
 * points, so that most of a leaf's points belong to the rank that compares it. Each rank gets as many comparisons as
 * the others.
 *
 * Parameters, one bit per leaf each: `noted`: leaves that some rank has a note of, which nobody compares. `own`: those
 * that this rank has the note of, so that it has their points; NULL: none.
 *
 * The caller frees, also on failure. Errors: SL_ENOMEM.
 */
sl_status sl_leaf_share_init(sl_leaf_share *s, const sl_points *points, const sl_leaves *leaves, sl_range some,
                             const uint64_t *noted, const uint64_t *own);
void sl_leaf_share_free(sl_leaf_share *s);

/* Sends each list to the rank that owns its point, which merges it into its own. `local`: a list per place of s; the
 * call frees them. `mine`: the rank's status so far. `lists`: of the rank's own points. Errors: those of the ranks. */
sl_status sl_leaf_share_exchange(const sl_leaf_share *s, const sl_points *points, sl_status mine,
                                 sl_neighbour_lists *local, sl_neighbour_lists *lists);

#endif
