/*
 * Leaves: overlapping sets of near members, whose pairs are compared with one another (PiPNN, arXiv 2602.21247).
 * A member is a row that takes part in a layer. Each partitioning has centres of its own, and puts a member into the
 * leaves of the centres nearest to it. Members that share no leaf of one partitioning share one of another.
 * Under inner product centres are directions. A leaf's members are then compared with those that score best for its
 * centre, wherever they are: long ones in the main.
 */
#ifndef SL_HNSW_BUILD_LEAVES_H
#define SL_HNSW_BUILD_LEAVES_H

#include "hnsw/build/points.h"

/* Members of a leaf: some SL_LEAF_POINTS, and SL_MAX_LEAF_POINTS at most; under IP any number, with up to
 * SL_LEAF_TARGETS answers. */
enum { SL_LEAF_POINTS = 800, SL_MAX_LEAF_POINTS = 1600, SL_PARTITIONINGS = 2, SL_MAX_FAN_OUT = 16 };
enum { SL_LEAF_TARGETS = SL_LEAF_POINTS + SL_LEAF_POINTS / 4 };

typedef struct sl_leaves {
    sl_allocator allocator;
    size_t count, most;  /* leaves; places of `starts` */
    uint64_t *starts;    /* leaf -> its first place in `rows`, and one more */
    size_t places, room; /* of `rows`, and what there is room for */
    uint32_t *points;    /* members, leaf by leaf; in a leaf by rising number */
    size_t n;
    uint32_t *targets; /* under IP: SL_LEAF_TARGETS places a leaf, the members that its own are compared with, SL_NONE
                        * behind them; NULL: its own are compared with one another */
    size_t targets_room;
} sl_leaves;

/* Returns the members that a leaf's own are compared with. */
static inline const uint32_t *sl_leaf_targets(const sl_leaves *leaves, size_t leaf, size_t *count) {
    const uint32_t *targets = leaves->targets + leaf * SL_LEAF_TARGETS;
    *count = leaves->starts[leaf + 1] - leaves->starts[leaf];
    if (!leaves->targets) return leaves->points + leaves->starts[leaf];
    for (*count = 0; *count < SL_LEAF_TARGETS && targets[*count] != SL_NONE;)
        ++*count;
    return targets;
}

/* Makes room for n * folds * SL_PARTITIONINGS places, and for `asked` leaves that are compared with others than their
 * own members. The caller frees, also on failure. Errors: SL_ENOMEM. */
sl_status sl_leaves_alloc(sl_leaves *leaves, size_t fan_out, size_t targets);
void sl_leaves_free(sl_leaves *leaves);
size_t sl_leaves_targets_room(size_t targets);

/* Appends a leaf of `size` members. Errors: SL_ENOMEM. */
sl_status sl_leaves_append(sl_leaves *leaves, const uint32_t *which, size_t size);

#endif
