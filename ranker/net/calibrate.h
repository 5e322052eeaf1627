/*
 * Calibrators: from observed floats to the range that integer codes cover.
 *
 * An observer keeps the exact minimum and maximum of its values, and a histogram of some 1/4096 of their largest
 * magnitude a bin. Its memory does not grow. Its content depends on the multiset of values alone. Order of calls,
 * division among threads and order of merges change no bit.
 *
 * docs/internals/calibration.md has the methods.
 */
#ifndef SL_RANKER_NET_CALIBRATE_H
#define SL_RANKER_NET_CALIBRATE_H

#include "base/status.h"

#include <shortlist_rank.h>

typedef struct sl_observer sl_observer;

/* The number of values and their extremes. Values that are not finite count apart and nowhere else. */
typedef struct sl_observed {
    uint64_t count;      /* finite values */
    uint64_t not_finite; /* NaN and infinite values */
    float low, high;     /* minimum and maximum; both 0 if count is 0 */
} sl_observed;

/* Makes an observer of no values, of 128 KB. Threads: one at a time; each thread has its own, to be merged. Errors:
 * SL_ENOMEM. */
sl_status sl_observer_create(const sl_allocator *allocator, sl_observer **out);
/* Frees an observer; NULL is allowed. */
void sl_observer_free(sl_observer *observer);

/* Takes n values. Values that are not finite are counted. */
void sl_observer_take(sl_observer *observer, const float *values, size_t n);
/* Adds the values of `from` to those of `into`. */
void sl_observer_merge(sl_observer *into, const sl_observer *from);
/* Forgets all values. */
void sl_observer_clear(sl_observer *observer);

/* Returns what an observer has seen. */
sl_observed sl_observer_seen(const sl_observer *observer);

/* Methods, numbered from 0. docs/internals/calibration.md says how to add one. */
#define SL_COUNT_ONE(name, number, text) +1
enum { SL_CALIBRATIONS = 0 SL_CALIBRATION_MAP(SL_COUNT_ONE) };
/* Whether this is a method. */
int sl_calibration_exists(sl_calibration method);

#define SL_RANGE_QUANTILE_DEFAULT 1e-4
#define SL_RANGE_MOST_LEVELS      256u

typedef struct sl_range_rule {
    sl_calibration method;
    /* QUANTILE: the share of values outside, 0 to below 1. Half of them lie at each end; symmetric, all are those of
     * the largest magnitude. */
    double quantile;
    /* 0: codes go from 0 to levels - 1, and one of them stands for 0. 1: codes go from -(levels / 2 - 1) to
     * levels / 2 - 1, and code 0 stands for 0. */
    int symmetric;
    unsigned levels;     /* even, 4 to SL_RANGE_MOST_LEVELS: 256 for 8 bits, 128 for 7 */
    int skip_not_finite; /* 1: a range is found though some values were not finite */
} sl_range_rule;

/* The code of x is rint(x / scale) + zero, kept within the first and the last code. It stands for
 * (code - zero) * scale. */
typedef struct sl_quant_range {
    float scale;     /* finite, FLT_MIN at least */
    int zero;        /* the code of 0; symmetric: 0 */
    float low, high; /* what the first and the last code stand for */
} sl_quant_range;

/* Returns the rule of a method for 8 bits, with the default quantile. */
sl_range_rule sl_range_rule_of(sl_calibration method, int symmetric);

/*
 * Finds the range of the values seen. The range always holds 0.
 *
 * One value c, or copies of it, give the range from 0 to c. Zeros alone give scale 1 and zero 0.
 *
 * Errors: SL_EINVAL (a bad rule, or no finite value was seen), SL_EVALUE (values were not finite), SL_ENOMEM (MSE).
 */
sl_status sl_observer_range(const sl_observer *observer, const sl_range_rule *rule, sl_quant_range *out);

/* Makes the range of codes from the ends of a range of values, widened to hold 0. `rule`: levels and symmetric alone
 * count. Errors: SL_EINVAL (a bad rule, or low > high), SL_EVALUE (an end is not finite). */
sl_status sl_quant_range_of(double low, double high, const sl_range_rule *rule, sl_quant_range *out);

#endif
