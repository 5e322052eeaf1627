/* The points of a layer that is being built. */
#ifndef SL_HNSW_BUILD_POINTS_H
#define SL_HNSW_BUILD_POINTS_H

#include "base/thread.h"
#include "hnsw/graph/index.h"
#include "storage/work.h"

/* The members of a layer. */
typedef struct sl_points {
    const sl_graph *graph;
    const sl_codec *codec; /* rows in codes I8, or F32 with differences, and their base */
    size_t n;
    const uint32_t *rows; /* member -> row; NULL: members are rows */
    size_t threads;
    sl_progress *progress;
    uint64_t steps; /* of `progress`, that linking all members counts; 0: none */
    sl_work *work;  /* where leaves, and what they tell, are noted; NULL: nowhere */
} sl_points;

/* The pairs of leaves are so many of `steps` parts; the two turns of choosing links share the others. */
enum { SL_STEP_PARTS = 4, SL_PAIR_PARTS = 2 };

/* Counts as done the i-th of n equal pieces of work, of so many parts. */
static inline void sl_points_step(const sl_points *points, uint64_t parts, uint64_t i, uint64_t n) {
    const uint64_t steps = points->steps * parts / SL_STEP_PARTS;
    sl_progress_step(points->progress, (i + 1) * steps / n - i * steps / n);
}

static inline uint32_t sl_point_row(const sl_points *points, size_t point) {
    return points->rows ? points->rows[point] : (uint32_t)point;
}

#endif
