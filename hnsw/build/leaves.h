/*
 * Leaves: overlapping sets of near members, whose pairs are compared with one another (PiPNN, arXiv 2602.21247).
 * A member is a row that takes part in a layer. Each partitioning has centres of its own, and puts a member into the
 * leaves of the centres nearest to it. Members that share no leaf of one partitioning share one of another.
 * Under inner product centres are directions. A leaf's members are then compared with those that score best for its
 * centre, wherever they are: long ones in the main.
 */
#ifndef SL_HNSW_BUILD_LEAVES_H
#define SL_HNSW_BUILD_LEAVES_H

#include "base/thread.h"
#include "hnsw/build/product.h"
#include "storage/work.h"

/* Members of a leaf: some SL_LEAF_ROWS, and SL_LEAF_MOST at most; under IP any number, with up to SL_LEAF_ASKED
 * answers. */
enum { SL_LEAF_ROWS = 800, SL_LEAF_MOST = 1600, SL_PARTITIONINGS = 2, SL_LEAF_FOLDS = 16 };
enum { SL_LEAF_ASKED = SL_LEAF_ROWS + SL_LEAF_ROWS / 4 };

/* The members of a layer. */
typedef struct sl_members {
    const sl_graph *graph;
    const sl_codec *codec; /* rows in codes I8, or F32 with differences, and their base */
    size_t n;
    const uint32_t *rows; /* member -> row; NULL: members are rows */
    size_t threads;
    sl_progress *progress;
    uint64_t steps; /* of `progress`, that linking all members counts; 0: none */
    sl_work *work;  /* where leaves, and what they tell, are noted; NULL: nowhere */
} sl_members;

/* The pairs of leaves are so many of `steps` parts; the two turns of choosing links share the others. */
enum { SL_STEP_PARTS = 4, SL_PAIR_PARTS = 2 };

/* Counts as done the i-th of n equal pieces of work, of so many parts. */
static inline void sl_members_step(const sl_members *members, uint64_t parts, uint64_t i, uint64_t n) {
    const uint64_t steps = members->steps * parts / SL_STEP_PARTS;
    sl_progress_step(members->progress, (i + 1) * steps / n - i * steps / n);
}

static inline uint32_t sl_member_row(const sl_members *members, size_t member) {
    return members->rows ? members->rows[member] : (uint32_t)member;
}

typedef struct sl_leaves {
    sl_allocator allocator;
    size_t count, most;  /* leaves; places of `starts` */
    uint64_t *starts;    /* leaf -> its first place in `rows`, and one more */
    size_t places, room; /* of `rows`, and what there is room for */
    uint32_t *rows;      /* members, leaf by leaf; in a leaf by rising number */
    size_t n;
    uint32_t *asked; /* under IP: SL_LEAF_ASKED places a leaf, the members that its own are compared with, SL_NONE
                      * behind them; NULL: its own are compared with one another */
    size_t asked_room;
} sl_leaves;

/* Returns the members that a leaf's own are compared with. */
static inline const uint32_t *sl_leaf_asked(const sl_leaves *leaves, size_t leaf, size_t *count) {
    const uint32_t *asked = leaves->asked + leaf * SL_LEAF_ASKED;
    *count = leaves->starts[leaf + 1] - leaves->starts[leaf];
    if (!leaves->asked) return leaves->rows + leaves->starts[leaf];
    for (*count = 0; *count < SL_LEAF_ASKED && asked[*count] != SL_NONE;)
        ++*count;
    return asked;
}

/* Makes leaves. folds: leaves of one partitioning that a member is in, 1 to SL_LEAF_FOLDS. The result depends on the
 * rows and the graph's seed; the number of threads changes nothing. Leaves that were noted are taken from there. The
 * caller frees, also on failure. Errors: SL_ENOMEM, SL_ECANCELED, SL_ENOSPC, SL_EIO. */
sl_status sl_leaves_make(sl_leaves *leaves, const sl_members *members, size_t folds);
void sl_leaves_free(sl_leaves *leaves);
/* Bytes of leaves. Parting a leaf again is not counted: later steps take more. */
sl_bytes sl_leaves_bytes(const sl_members *members, size_t folds);
/* Counts the comparisons of members with centres. Under IP they grow as the square of n: each centre is compared with
 * all members. */
double sl_leaves_compared(size_t n, size_t folds, sl_metric metric);
/* Counts the comparisons of members with those of their leaves, were every leaf of the usual size. */
double sl_leaves_pairs(size_t n, size_t folds);

#endif
