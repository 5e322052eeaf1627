/*
 * Leaves: overlapping sets of near points. The points of a leaf are compared with each other, all with all (PiPNN,
 * arXiv 2602.21247).
 *
 * Each partitioning has its own centres. It puts a point into the leaves of the centres nearest to it. Points that are
 * apart in one partitioning are often together in another.
 *
 * Under inner product a centre is a direction. A leaf's points are then compared with the leaf's targets instead: the
 * points of the layer that score best for the centre. Most targets are long vectors.
 */
#ifndef SL_HNSW_CONSTRUCT_LEAVES_H
#define SL_HNSW_CONSTRUCT_LEAVES_H

#include "hnsw/construct/points.h"

/* A leaf has some SL_LEAF_POINTS points and at most SL_MAX_LEAF_POINTS. Under IP it has any number of points, and up to
 * SL_LEAF_TARGETS targets. */
enum { SL_LEAF_POINTS = 800, SL_MAX_LEAF_POINTS = 1600, SL_PARTITIONINGS = 2, SL_MAX_FAN_OUT = 16 };
enum { SL_LEAF_TARGETS = SL_LEAF_POINTS + SL_LEAF_POINTS / 4 };

typedef struct sl_leaves {
    sl_allocator allocator;
    size_t count, most;  /* leaves; places of `starts` */
    uint64_t *starts;    /* leaf -> its first place in `points`; one more entry for the end */
    size_t places, room; /* places used of `points`; places allocated */
    uint32_t *points;    /* points, leaf by leaf, rising within a leaf */
    size_t n;            /* points of the layer */
    uint32_t *targets;   /* under IP: SL_LEAF_TARGETS places per leaf, unused ones SL_NONE; NULL: the targets of a leaf
                            are its own points */
    size_t targets_room;
} sl_leaves;

/* Returns the targets of a leaf, which its points are compared with, and sets *count to their number. */
static inline const uint32_t *sl_leaf_targets(const sl_leaves *leaves, size_t leaf, size_t *count) {
    const uint32_t *targets = leaves->targets + leaf * SL_LEAF_TARGETS;
    *count = leaves->starts[leaf + 1] - leaves->starts[leaf];
    if (!leaves->targets) return leaves->points + leaves->starts[leaf];
    for (*count = 0; *count < SL_LEAF_TARGETS && targets[*count] != SL_NONE;)
        ++*count;
    return targets;
}

/* Allocates room for n * fan_out * SL_PARTITIONINGS places, and for the targets of `targets` leaves of each
 * partitioning. 0: a leaf's targets are its own points. The caller frees, also on failure. Errors: SL_ENOMEM. */
sl_status sl_leaves_alloc(sl_leaves *leaves, size_t fan_out, size_t targets);
void sl_leaves_free(sl_leaves *leaves);
/* Places of `targets` for this many leaves of each partitioning. */
size_t sl_leaves_targets_room(size_t targets);

/* Appends a leaf of `size` points. `which` may lie in leaves->points. Errors: SL_ENOMEM. */
sl_status sl_leaves_append(sl_leaves *leaves, const uint32_t *which, size_t size);

#endif
