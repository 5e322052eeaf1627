/* Calibration: chooses the range of INT8 codes from observed floats.
 *
 * An observer keeps the exact minimum and maximum of its values, and a histogram with bins of about 1/4096 of the
 * largest magnitude. Its memory is constant. Its content depends on the multiset of values alone: the order of calls,
 * the split among threads and the order of merges change no bit.
 *
 * docs/internals/calibration.md describes the methods. */
#ifndef SL_RANKER_NET_CALIBRATE_H
#define SL_RANKER_NET_CALIBRATE_H

#include "base/status.h"

#include <shortlist_rank.h>

typedef struct sl_observer sl_observer;

/* The number of values and their extremes. Values that are not finite have a count of their own, and take no other
 * part. */
typedef struct sl_observed {
    uint64_t count;      /* finite values */
    uint64_t not_finite; /* NaN and infinite values */
    float low, high;     /* minimum and maximum; both 0 if count is 0 */
} sl_observed;

/* Makes an empty observer, of 128 KB. Errors: SL_ENOMEM.
 * Threads: one thread uses an observer at a time; give each thread its own and merge them. */
sl_status sl_observer_create(const sl_allocator *allocator, sl_observer **out);
/* Frees an observer; NULL is allowed. */
void sl_observer_free(sl_observer *observer);

/* Adds n values. Values that are not finite are only counted. */
void sl_observer_add(sl_observer *observer, const float *values, size_t n);
/* Adds the values of `from` to `into`. */
void sl_observer_merge(sl_observer *into, const sl_observer *from);
/* Drops all values. */
void sl_observer_clear(sl_observer *observer);

/* Returns the counts and extremes. */
sl_observed sl_observer_seen(const sl_observer *observer);

/* Methods, numbered from 0. docs/internals/calibration.md describes how to add one. */
#define SL_COUNT_ONE(name, number, text) +1
enum { SL_CALIBRATIONS = 0 SL_CALIBRATION_MAP(SL_COUNT_ONE) };
/* Returns whether the number is a method's. */
int sl_calibration_exists(sl_calibration method);

#define SL_RANGE_QUANTILE_DEFAULT 1e-4
#define SL_RANGE_MAX_LEVELS       256u

typedef struct sl_range_rule {
    sl_calibration method;
    /* QUANTILE: the share of values to clip, 0 to below 1. Half of them are at each end; if symmetric, they are the
     * largest magnitudes. */
    double quantile;
    /* 0: codes go from 0 to levels - 1, and one of them stands for 0. 1: codes go from -(levels / 2 - 1) to levels / 2
     * - 1, and code 0 stands for 0. */
    int symmetric;
    unsigned levels;     /* even, 4 to SL_RANGE_MAX_LEVELS: 256 for 8 bits, 128 for 7 */
    int skip_not_finite; /* 1: ignores values that are not finite; 0: they are an error */
} sl_range_rule;

/* The code of x is rint(x / scale) + zero, clamped to the first and the last code. A code stands for (code - zero) *
 * scale. */
typedef struct sl_quant_range {
    float scale;     /* finite, at least FLT_MIN */
    int zero;        /* the code of 0; symmetric: 0 */
    float low, high; /* values of the first and the last code */
} sl_quant_range;

/* Returns a method's rule for 8 bits, with the default quantile. */
sl_range_rule sl_range_rule_of(sl_calibration method, int symmetric);

/* Finds the range for the observed values. The range always contains 0.
 *
 * If all values are c, the range is 0 to c. If all are 0, scale is 1 and zero is 0.
 *
 * Errors: SL_EINVAL (a bad rule, or no finite value), SL_EVALUE (values were not finite), SL_ENOMEM (MSE). */
sl_status sl_observer_range(const sl_observer *observer, const sl_range_rule *rule, sl_quant_range *out);

/* Makes the range of codes from the ends of a range of values, widened to contain 0. It reads only levels and
 * symmetric of `rule`. Errors: SL_EINVAL (a bad rule, or low > high), SL_EVALUE (an end is not finite). */
sl_status sl_quant_range_of(double low, double high, const sl_range_rule *rule, sl_quant_range *out);

#endif
