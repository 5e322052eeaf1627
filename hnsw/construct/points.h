/* The points of a layer that is being built: the rows that take part in it. */
#ifndef SL_HNSW_CONSTRUCT_POINTS_H
#define SL_HNSW_CONSTRUCT_POINTS_H

#include "base/thread.h"
#include "hnsw/graph/index.h"
#include "storage/work.h"

typedef struct sl_points {
    const sl_graph *graph;
    const sl_codec *codec; /* codes I8, or F32 scored by differences; its base has the rows */
    size_t n;
    const uint32_t *rows; /* point -> row, rising; NULL: point i is row i */
    size_t threads;
    sl_progress *progress;
    uint64_t steps;        /* steps of `progress` that linking all points counts; 0: none */
    sl_work *work;         /* the file for notes of leaves; NULL: none */
    const sl_ranks *ranks; /* the ranks that link these points together; NULL: each process links them alone */
} sl_points;

/* Points that a rank takes at once. */
enum { SL_POINTS_UNIT = SL_SHARED_ROWS };

/* The points that this process links. */
static inline sl_range sl_points_mine(const sl_points *points) {
    return sl_share_mine(points->ranks, points->n, SL_POINTS_UNIT);
}

/* The progress of linking a layer has SL_STEP_PARTS parts. Comparing the pairs of leaves takes SL_PAIR_PARTS of them.
 * Each of the two passes of selecting links takes one. */
enum { SL_STEP_PARTS = 4, SL_PAIR_PARTS = 2 };

/* Counts piece i of n equal pieces of work as done. All n pieces together are `parts` parts of the progress. */
static inline void sl_points_step(const sl_points *points, uint64_t parts, uint64_t i, uint64_t n) {
    const uint64_t steps = points->steps * parts / SL_STEP_PARTS;
    sl_progress_step(points->progress, (i + 1) * steps / n - i * steps / n);
}

static inline uint32_t sl_point_row(const sl_points *points, size_t point) {
    return points->rows ? points->rows[point] : (uint32_t)point;
}

#endif
