#include "hnsw/tune/curve.h"

#include <math.h>
#include <string.h>

void sl_curve_add(sl_curve *curve, const sl_tune_point *point) {
    size_t at = 0;
    while (at < curve->count && curve->points[at].at < point->at)
        at++;
    int same = at < curve->count && curve->points[at].at == point->at;
    if (!same) {
        if (curve->count == SL_CURVE_POINTS) return;
        memmove(curve->points + at + 1, curve->points + at, (curve->count - at) * sizeof *curve->points);
        curve->count++;
    }
    curve->points[at] = *point;
}

const sl_tune_point *sl_curve_at(const sl_curve *curve, size_t at) {
    for (size_t i = 0; i < curve->count; i++)
        if (curve->points[i].at == at) return &curve->points[i];
    return NULL;
}

/* A pass without a miss says only that misses are rarer than one in all its neighbours, so the odds stay finite. */
double sl_curve_log_odds(const sl_curve *curve, double recall) {
    double least = 0.5 / (curve->hits + 1);
    double p = fmin(fmax(recall, least), 1 - least);
    return log(p / (1 - p));
}

/* Fits the nearest rising sequence to the points' log odds, by pooling adjacent violators (Ayer et al., 1955). */
static void fit_rising(const sl_curve *curve, double *out) {
    double mean[SL_CURVE_POINTS];
    size_t size[SL_CURVE_POINTS], blocks = 0;
    for (size_t i = 0; i < curve->count; i++) {
        mean[blocks] = sl_curve_log_odds(curve, curve->points[i].recall);
        size[blocks++] = 1;
        for (; blocks > 1 && mean[blocks - 2] > mean[blocks - 1]; blocks--) {
            size_t left = size[blocks - 2], right = size[blocks - 1];
            mean[blocks - 2] =
                (mean[blocks - 2] * (double)left + mean[blocks - 1] * (double)right) / (double)(left + right);
            size[blocks - 2] = left + right;
        }
    }
    for (size_t block = 0, at = 0; block < blocks; block++)
        for (size_t i = 0; i < size[block]; i++)
            out[at++] = mean[block];
}

/* Interpolates between a and b in logarithms. */
static double interpolate(double a, double b, double t) {
    return a > 0 && b > 0 ? exp(log(a) + t * (log(b) - log(a))) : b;
}

int sl_curve_find(const sl_curve *curve, double recall, sl_tune_point *out) {
    double fitted[SL_CURVE_POINTS], wanted = sl_curve_log_odds(curve, recall);
    size_t at = 0;
    fit_rising(curve, fitted);
    while (at < curve->count && fitted[at] < wanted)
        at++;
    if (at == curve->count) return 0;
    const sl_tune_point *above = &curve->points[at];
    *out = *above;
    if (at == 0) return 1;
    const sl_tune_point *below = above - 1;
    double t = (wanted - fitted[at - 1]) / (fitted[at] - fitted[at - 1]);
    double place = ceil(interpolate((double)below->at, (double)above->at, t) - 1e-6);
    out->at = place <= (double)below->at ? below->at + 1 : place < (double)above->at ? (size_t)place : above->at;
    out->evaluations = interpolate(below->evaluations, above->evaluations, t);
    out->recall = recall;
    return 1;
}
