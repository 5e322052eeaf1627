#include "hnsw/tune/choose_stop.h"

#include "hnsw/search/allowed.h"
#include "hnsw/tune/hard_queries.h"

#include <math.h>
#include <string.h>

/* A walk with a stop keeps so many times what ef alone would. Hard queries are to go further than they went. A search
 * with this ef bounds what the hardest may cost. */
#define CAP 2u

/* Hard queries gain nothing with less room than this above ef alone. */
#define LEAST_CAP 1.25

/* A stop is taken where it saves so much: its mean saving is paid for at the far end of the latencies. */
#define WORTH 0.97

/* The stop is found when a search for a better one would save less than this part. */
#define CLOSE 0.01
/* The same limit in log odds of a hit, and about how much these rise with the logarithm of stop. */
#define CLOSE_ODDS 0.02
#define SLOPE      3.0

#define FIRST_STOP 0.0625
#define MOST_STEPS ((size_t)1 << 20)

/* Returns how log odds rise with the logarithm of stop, by the two points at the end of the curve where `from` is. */
static double slope_at(const sl_curve *curve, const sl_tune_point *from) {
    if (curve->count < 2) return SLOPE;
    const sl_tune_point *low = from == curve->points ? from : from - 1, *high = low + 1;
    double rise = sl_curve_log_odds(curve, high->recall) - sl_curve_log_odds(curve, low->recall);
    return fmin(fmax(rise / log((double)high->at / (double)low->at), 1), 2 * SLOPE);
}

/* Goes from a point of the curve to where the target is expected, and a little further, so that it lies between the
 * two. */
static size_t stepped(const sl_curve *curve, const sl_tune_point *from, double wanted) {
    double gap = sl_curve_log_odds(curve, wanted) - sl_curve_log_odds(curve, from->recall);
    double factor = exp(1.1 * gap / slope_at(curve, from));
    factor = gap > 0 ? fmin(fmax(factor, 1.02), 2) : fmax(fmin(factor, 0.98), 0.5);
    double at = factor > 1 ? ceil(factor * (double)from->at) : floor(factor * (double)from->at);
    return (size_t)fmin(fmax(at, 1), (double)MOST_STEPS);
}

static size_t first_steps(const sl_tune *tune, const sl_curve *curve, double wanted) {
    if (!(tune->stop > 0)) return (size_t)(FIRST_STOP / SL_STOP_STEP);
    const sl_tune_point last = {.at = (size_t)(tune->stop / SL_STOP_STEP), .recall = tune->stop_recall};
    return stepped(curve, &last, wanted);
}

/* Returns the first point that was measured to reach this recall, or NULL. */
static const sl_tune_point *first_measured(const sl_curve *curve, double target) {
    for (size_t i = 0; i < curve->count; i++)
        if (curve->points[i].recall >= sl_tune_target_with_margin(target, &curve->points[i])) return &curve->points[i];
    return NULL;
}

/* Returns where to measure next, or 0 where nothing better is expected. `dear` is what ef alone costs. */
static size_t next_steps(const sl_tune *tune, const sl_curve *curve, double target, double dear) {
    if (curve->count == 0) return first_steps(tune, curve, target);
    const sl_tune_point *met = first_measured(curve, target), *last = &curve->points[curve->count - 1];
    sl_tune_point expected;
    size_t next;
    if (!met) {
        next = last->evaluations < WORTH * dear ? stepped(curve, last, sl_tune_target_with_margin(target, last)) : 0;
    } else if (met == curve->points) {
        double wanted = sl_tune_target_with_margin(target, met);
        int near = sl_curve_log_odds(curve, met->recall) - sl_curve_log_odds(curve, wanted) < CLOSE_ODDS;
        next = near ? 0 : stepped(curve, met, wanted);
    } else {
        int close = !sl_tune_expect(curve, target, &expected) || met->evaluations <= (1 + CLOSE) * expected.evaluations;
        /* The measurement lies a little further, lest the same place is met from below again and again. */
        next = close ? 0 : expected.at + expected.at / 256;
    }
    return next && sl_curve_at(curve, next) ? 0 : next;
}

static sl_status measure(sl_tune *tune, size_t ef, size_t steps, size_t depth, sl_tune_point *out) {
    const sl_pass_settings asked = {.ef = ef, .stop = (double)steps * SL_STOP_STEP, .watched = depth, .only = 1};
    SL_TRY(sl_tune_pass(&tune->task, &asked, out));
    out->at = steps;
    return SL_OK;
}

static void take(sl_tuned_record *record, size_t ef, size_t depth, const sl_tune_point *point) {
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
        SL_TRY(measure(tune, ef, next, depth, &point));
        sl_curve_add(curve, &point);
        steps = next;
    }
    const sl_tune_point *met = first_measured(curve, record->target);
    if (!met || met->evaluations > WORTH * record->evaluations) return SL_OK;
    sl_tune_point kept = *met;
    tune->stop = (double)kept.at * SL_STOP_STEP;
    tune->stop_recall = kept.recall;
    if (steps != kept.at) SL_TRY(measure(tune, ef, kept.at, depth, &kept));
    if (sl_tune_is_no_worse(tune->alone, task->hits, task->nq, task->k)) take(record, ef, task->depths[depth], &kept);
    return SL_OK;
}
