/* The points of a layer that is being built. */
#ifndef SL_HNSW_BUILD_POINTS_H
#define SL_HNSW_BUILD_POINTS_H

#include "base/thread.h"
#include "hnsw/graph/index.h"
#include "storage/work.h"

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

#endif
