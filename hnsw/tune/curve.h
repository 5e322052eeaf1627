/* Recall over ef, or over stop, as a curve through measured points. */
#ifndef SL_HNSW_TUNE_CURVE_H
#define SL_HNSW_TUNE_CURVE_H

#include <stddef.h>

/* The unit of stop in `at`. */
#define SL_STOP_STEP (1.0 / 65536)

/* Measurements of a pass with one depth of re-ranking. */
typedef struct sl_tune_point {
    size_t at;            /* the setting that changes along the curve: ef, or stop in units of SL_STOP_STEP */
    double recall, error; /* mean over the queries, and its standard error */
    double evaluations;   /* mean per query */
} sl_tune_point;

#define SL_CURVE_POINTS 256

/* Recall over ef, or over stop, at measured points. Between two points the log odds of a hit are assumed to rise
 * linearly with the logarithm of ef or stop. */
typedef struct sl_curve {
    double hits; /* neighbours that all queries of a pass look for. The odds of a hit count as at most one miss in twice
                    this many */
    sl_tune_point points[SL_CURVE_POINTS]; /* in rising order of `at` */
    size_t count;
} sl_curve;

/* Adds a point, or replaces the point with the same `at`. A full curve stays as it is. */
void sl_curve_add(sl_curve *curve, const sl_tune_point *point);
/* Returns the point with this `at`, or NULL. */
const sl_tune_point *sl_curve_at(const sl_curve *curve, size_t at);
/* Finds where the curve first reaches this recall. `out` gets the expected values, with `at` rounded up. Returns 0 if
 * the curve stays below. */
int sl_curve_find(const sl_curve *curve, double recall, sl_tune_point *out);
/* Returns the logarithm of the odds of a hit. It is always finite. */
double sl_curve_log_odds(const sl_curve *curve, double recall);

#endif
