#include "hnsw/tune/choose_ef.h"

#include "hnsw/tune/choose_stop.h"
#include "hnsw/tune/truth.h"

#include <math.h>

/* Ends the search if no other point is expected to be cheaper by more than this share. */
#define CLOSE 0.01

/* ---------------------------------------------------------------------------------------------------------------
 * Rising ef
 * ------------------------------------------------------------------------------------------------------------- */

/* Makes one pass at this ef, which adds a point to every curve. */
static sl_status measure_depths(sl_tune *tune, size_t ef, size_t watched) {
    const sl_pass_settings settings = {.ef = ef, .watched = watched};
    sl_tune_point points[SL_TUNE_DEPTHS];
    SL_TRY(sl_tune_pass(&tune->task, &settings, points));
    for (size_t d = 0; d < tune->task.depth_count; d++) {
        points[d].at = ef;
        sl_curve_add(&tune->curves[d], &points[d]);
    }
    return SL_OK;
}

/* Returns whether four times the ef closed less than a sixteenth of the gap to the target. Then no ef will close it. */
static int has_stalled(const sl_curve *curve, double wanted) {
    const sl_tune_point *last = &curve->points[curve->count - 1];
    return curve->count > 4 && last->recall - last[-4].recall < (wanted - last->recall) / 16;
}

/* A depth and a point of its curve. */
typedef struct choice {
    int found;
    size_t depth;
    sl_tune_point point;
    double cost;
} choice;

static void keep_cheaper(const sl_tune *tune, choice *best, size_t depth, const sl_tune_point *point) {
    double cost = sl_tune_cost(tune, depth, point->at, point->evaluations);
    if (!best->found || cost < best->cost) *best = (choice){1, depth, *point, cost};
}

/* Returns the cheapest choice that is expected to reach the target. */
static choice expected_choice(const sl_tune *tune, double target) {
    choice best = {0};
    for (size_t d = 0; d < tune->task.depth_count; d++) {
        sl_tune_point point;
        if (sl_tune_expect(&tune->curves[d], target, &point)) keep_cheaper(tune, &best, d, &point);
    }
    return best;
}

/* Stops once the walk alone costs more than the best choice for the highest target, because no depth of re-ranking is
 * cheaper then. */
sl_status sl_tune_measure_ladder(sl_tune *tune) {
    const sl_tune_task *task = &tune->task;
    const sl_curve *deepest = &tune->curves[task->depth_count - 1];
    double highest = tune->targets[tune->count - 1], ladder = (double)task->k;
    for (size_t ef = task->k;;) {
        SL_TRY(measure_depths(tune, ef, 0));
        if (ef == task->max_ef || has_stalled(deepest, highest)) break;
        choice best = expected_choice(tune, highest);
        if (best.found && best.cost <= deepest->points[deepest->count - 1].evaluations) break;
        ladder *= 1.41421356;
        size_t next = (size_t)ladder > ef ? (size_t)ladder : ef + 1;
        ef = next < task->max_ef ? next : task->max_ef;
    }
    sl_tune_end_step(tune, SL_TUNE_LADDER);
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * One target
 * ------------------------------------------------------------------------------------------------------------- */

static void write_record(sl_tune *tune, size_t t, size_t depth, const sl_tune_point *point, sl_tune_limit limit) {
    const sl_tune_task *task = &tune->task;
    size_t rows = task->depths[depth] < point->at ? task->depths[depth] : point->at;
    double wanted = fmin(tune->targets[t], point->recall);
    size_t least_k = limit == SL_LIMIT_NONE ? sl_tune_least_k(task, wanted) : task->k;
    tune->records[t] = (sl_tuned_record){.target = tune->targets[t],
                                         .recall = point->recall,
                                         .standard_error = point->error,
                                         .evaluations = point->evaluations,
                                         .n = sl_undeleted_count(&task->index->graph),
                                         .queries = task->nq,
                                         .k = (uint32_t)task->k,
                                         .least_k = (uint32_t)least_k,
                                         .ef = (uint32_t)point->at,
                                         .rerank = (uint32_t)rows,
                                         .limit = (uint32_t)limit};
}

/* Returns the cheapest choice that a pass has measured to reach the target. With the margin, if any choice has it. */
static choice measured_choice(const sl_tune *tune, double target) {
    choice best = {0};
    for (int margin = 1; margin >= 0 && !best.found; margin--) {
        for (size_t d = 0; d < tune->task.depth_count; d++) {
            for (size_t i = 0; i < tune->curves[d].count; i++) {
                const sl_tune_point *point = &tune->curves[d].points[i];
                if (point->recall >= (margin ? sl_tune_target_with_margin(target, point) : target))
                    keep_cheaper(tune, &best, d, point);
            }
        }
    }
    return best;
}

/* Returns the point with the best recall; of several, the first. */
static const sl_tune_point *best_point(const sl_curve *curve) {
    const sl_tune_point *best = &curve->points[0];
    for (size_t i = 1; i < curve->count; i++)
        if (curve->points[i].recall > best->recall) best = &curve->points[i];
    return best;
}

/* Records the best point for a target that no curve reaches, and what limits recall. */
static sl_status record_limit(sl_tune *tune, size_t t) {
    size_t best = 0;
    for (size_t d = 1; d < tune->task.depth_count; d++)
        if (best_point(&tune->curves[d])->recall > best_point(&tune->curves[best])->recall) best = d;
    const sl_curve *curve = &tune->curves[best];
    const sl_tune_point *last = &curve->points[curve->count - 1];
    sl_tune_limit limit = SL_LIMIT_GRAPH;
    sl_resolution resolution;
    double share;
    int lose;
    SL_TRY(sl_tune_coverage(&tune->task, last->at, &share));
    SL_TRY(sl_tune_codes_lose(tune->task.index, &resolution, &lose));
    if (share >= tune->targets[t] || lose)
        limit = SL_LIMIT_CODES;
    else if (last->at < sl_undeleted_count(&tune->task.index->graph) && last->at == tune->task.max_ef &&
             !has_stalled(curve, tune->targets[t]))
        limit = SL_LIMIT_EF;
    write_record(tune, t, best, best_point(curve), limit);
    return SL_OK;
}

/* Measures at the ef where a curve is expected to reach the target. Each pass improves the curves, and the next one
 * uses them. Ends once no choice is expected to be cheaper than the measured one. The last pass uses the chosen
 * settings. */
static sl_status close_in_on_target(sl_tune *tune, double target, choice *out) {
    size_t ef = 0, watched = 0;
    for (size_t round = 0; round < SL_TUNE_ROUNDS; round++) {
        choice next = expected_choice(tune, target), now = measured_choice(tune, target);
        if (!next.found || (now.found && now.cost <= (1 + CLOSE) * next.cost)) break;
        if (sl_curve_at(&tune->curves[next.depth], next.point.at)) break;
        /* Measures a little further. Otherwise the passes could stop just below the target again and again. */
        ef = next.point.at + next.point.at / 256;
        if (ef > tune->task.max_ef) ef = tune->task.max_ef;
        watched = next.depth;
        SL_TRY(measure_depths(tune, ef, watched));
    }
    *out = measured_choice(tune, target);
    if (!out->found || (ef == out->point.at && watched == out->depth)) return SL_OK;
    const sl_pass_settings settings = {.ef = out->point.at, .watched = out->depth, .only = 1};
    sl_tune_point again;
    return sl_tune_pass(&tune->task, &settings, &again);
}

sl_status sl_tune_choose_ef(sl_tune *tune, size_t t) {
    choice kept;
    SL_TRY(close_in_on_target(tune, tune->targets[t], &kept));
    if (kept.found) {
        write_record(tune, t, kept.depth, &kept.point, SL_LIMIT_NONE);
        sl_tune_end_step(tune, SL_TUNE_ROUNDS + 1);
        SL_TRY(sl_tune_choose_stop(tune, t, kept.depth));
        sl_tune_end_step(tune, SL_TUNE_STOP_ROUNDS + 1);
    } else {
        SL_TRY(record_limit(tune, t));
        sl_tune_end_step(tune, SL_TUNE_ROUNDS + 1 + SL_TUNE_STOP_ROUNDS + 1);
    }
    return SL_OK;
}
