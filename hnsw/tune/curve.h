/* Recall over ef, or over stop, as a curve through measured points. */
#ifndef SL_HNSW_TUNE_CURVE_H
#define SL_HNSW_TUNE_CURVE_H

#include <stddef.h>

/* The step of stop along a curve over it. */
#define SL_STOP_STEP (1.0 / 65536)

/* The finding of a pass with one depth of re-ranking. */
typedef struct sl_tune_point {
    size_t at;            /* the setting that changes along a curve: ef, or stop in SL_STOP_STEP */
    double recall, error; /* mean over the queries, and its standard error */
    double evaluations;   /* a query, mean */
} sl_tune_point;

#define SL_CURVE_POINTS 256

/* Recall over ef, or over stop, measured at some points. Between points recall is taken to rise: as a straight line of
 * the logarithm of ef or stop, and of the odds of a hit. */
typedef struct sl_curve {
    double hits; /* neighbours asked for in a pass; no odds are counted higher than one miss in twice as many */
    sl_tune_point points[SL_CURVE_POINTS]; /* in rising order of `at` */
    size_t count;
} sl_curve;

/* Adds a point, or replaces the point at the same place. Nothing happens where the curve is full. */
void sl_curve_add(sl_curve *curve, const sl_tune_point *point);
/* Returns the point at this place, or NULL. */
const sl_tune_point *sl_curve_at(const sl_curve *curve, size_t at);
/* Finds where the curve first comes to this recall: all fields as expected there, `at` rounded up. Returns 0 where it
 * does not come to it. */
int sl_curve_find(const sl_curve *curve, double recall, sl_tune_point *out);
/* Returns the logarithm of the odds of a hit, kept finite. */
double sl_curve_log_odds(const sl_curve *curve, double recall);

#endif
