#include "hnsw/tune/choose_stop.h"

#include "hnsw/search/allowed.h"
#include "hnsw/tune/hard_queries.h"

#include <math.h>
#include <string.h>

/* A walk with a stop has an ef this many times as large, so that hard queries go further than before. This ef bounds
 * the cost of the hardest queries. */
#define CAP 2u

/* If the ef with a stop can't be this many times the ef alone, hard queries gain nothing. */
#define LEAST_CAP 1.25

/* A stop must lower the mean cost at least to this share, because it raises the highest latencies. */
#define WORTH 0.97

/* Ends the search for a stop if a better stop would save less than this share. */
#define CLOSE 0.01
/* The same limit in log odds of a hit; and about how fast these rise with the logarithm of stop. */
#define CLOSE_ODDS 0.02
#define SLOPE      3.0

#define FIRST_STOP 0.0625
#define MOST_STEPS ((size_t)1 << 20)

/* Returns how fast log odds rise with the logarithm of stop, from the two points at `from`'s end of the curve. */
static double slope_at(const sl_curve *curve, const sl_tune_point *from) {
    if (curve->count < 2) return SLOPE;
    const sl_tune_point *low = from == curve->points ? from : from - 1, *high = low + 1;
    double rise = sl_curve_log_odds(curve, high->recall) - sl_curve_log_odds(curve, low->recall);
    return fmin(fmax(rise / log((double)high->at / (double)low->at), 1), 2 * SLOPE);
}

/* Steps from a point to where the target is expected, and a little further, so that the two points enclose it. */
static size_t step_towards(const sl_curve *curve, const sl_tune_point *from, double wanted) {
    double gap = sl_curve_log_odds(curve, wanted) - sl_curve_log_odds(curve, from->recall);
    double factor = exp(1.1 * gap / slope_at(curve, from));
    factor = gap > 0 ? fmin(fmax(factor, 1.02), 2) : fmax(fmin(factor, 0.98), 0.5);
    double at = factor > 1 ? ceil(factor * (double)from->at) : floor(factor * (double)from->at);
    return (size_t)fmin(fmax(at, 1), (double)MOST_STEPS);
}

static size_t first_steps(const sl_tune *tune, const sl_curve *curve, double wanted) {
    if (!(tune->stop > 0)) return (size_t)(FIRST_STOP / SL_STOP_STEP);
    const sl_tune_point last = {.at = (size_t)(tune->stop / SL_STOP_STEP), .recall = tune->stop_recall};
    return step_towards(curve, &last, wanted);
}

/* Returns the first point that was measured to reach this recall, or NULL. */
static const sl_tune_point *first_measured(const sl_curve *curve, double target) {
    for (size_t i = 0; i < curve->count; i++)
        if (curve->points[i].recall >= sl_tune_target_with_margin(target, &curve->points[i])) return &curve->points[i];
    return NULL;
}

/* Returns where to measure next, in units of SL_STOP_STEP, or 0 if no better stop is expected.
 * Parameters: ef_cost: the cost of ef alone. */
static size_t next_steps(const sl_tune *tune, const sl_curve *curve, double target, double ef_cost) {
    if (curve->count == 0) return first_steps(tune, curve, target);
    const sl_tune_point *reached = first_measured(curve, target), *last = &curve->points[curve->count - 1];
    sl_tune_point expected;
    size_t next;
    if (!reached) {
        next = last->evaluations < WORTH * ef_cost ? step_towards(curve, last, sl_tune_target_with_margin(target, last))
                                                   : 0;
    } else if (reached == curve->points) {
        double wanted = sl_tune_target_with_margin(target, reached);
        int is_near = sl_curve_log_odds(curve, reached->recall) - sl_curve_log_odds(curve, wanted) < CLOSE_ODDS;
        next = is_near ? 0 : step_towards(curve, reached, wanted);
    } else {
        int close =
            !sl_tune_expect(curve, target, &expected) || reached->evaluations <= (1 + CLOSE) * expected.evaluations;
        /* Measures a little further. Otherwise the passes could stop just below the target again and again. */
        next = close ? 0 : expected.at + expected.at / 256;
    }
    return next && sl_curve_at(curve, next) ? 0 : next;
}

static sl_status measure_stop(sl_tune *tune, size_t ef, size_t steps, size_t depth, sl_tune_point *out) {
    const sl_pass_settings settings = {.ef = ef, .stop = (double)steps * SL_STOP_STEP, .watched = depth, .only = 1};
    SL_TRY(sl_tune_pass(&tune->task, &settings, out));
    out->at = steps;
    return SL_OK;
}

static void write_record(sl_tuned_record *record, size_t ef, size_t depth, const sl_tune_point *point) {
    record->ef_alone = record->ef;
    record->ef = (uint32_t)ef;
    record->rerank = (uint32_t)(depth < ef ? depth : ef);
    record->stop = (float)((double)point->at * SL_STOP_STEP);
    record->recall = point->recall;
    record->standard_error = point->error;
    record->evaluations = point->evaluations;
}

sl_status sl_tune_choose_stop(sl_tune *tune, size_t t, size_t depth) {
    sl_tuned_record *record = &tune->records[t];
    sl_tune_task *task = &tune->task;
    sl_curve *curve = &tune->curves[task->depth_count];
    size_t ef = CAP * (size_t)record->ef, steps = 0;
    if (!sl_may_stop_early(&task->index->graph, &(sl_search_params){0})) return SL_OK;
    if (ef > task->max_ef) ef = task->max_ef;
    if ((double)ef < LEAST_CAP * record->ef) return SL_OK;
    memcpy(tune->alone, task->hits, task->nq * sizeof *task->hits);
    curve->count = 0;
    for (size_t round = 0; round < SL_TUNE_STOP_ROUNDS; round++) {
        size_t next = next_steps(tune, curve, record->target, record->evaluations);
        if (!next) break;
        sl_tune_point point;
        SL_TRY(measure_stop(tune, ef, next, depth, &point));
        sl_curve_add(curve, &point);
        steps = next;
    }
    const sl_tune_point *reached = first_measured(curve, record->target);
    if (!reached || reached->evaluations > WORTH * record->evaluations) return SL_OK;
    sl_tune_point kept = *reached;
    tune->stop = (double)kept.at * SL_STOP_STEP;
    tune->stop_recall = kept.recall;
    if (steps != kept.at) SL_TRY(measure_stop(tune, ef, kept.at, depth, &kept));
    if (sl_tune_is_no_worse(tune->alone, task->hits, task->nq, task->k))
        write_record(record, ef, task->depths[depth], &kept);
    return SL_OK;
}
