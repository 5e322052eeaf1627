/* Observers of floats, and the methods that choose ranges. */
#include "ranker/net/calibrate.h"

#include "base/memory.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The bins of a side hold magnitudes below 2^exponent. A bin is 2^(exponent - BITS) wide. A larger exponent merges
 * 2^shift bins into one, with the counts that it would have had from the start. The smallest subnormal float is below
 * 2^LEAST_EXPONENT. */
enum { BITS = 13, BINS = 1 << BITS, LEAST_EXPONENT = -148 };

/* The sign of a value, as an index. */
enum { POSITIVE, NEGATIVE, SIDES };

struct sl_observer {
    sl_allocator allocator;
    uint64_t count, not_finite;
    float low, high; /* low is infinity and high -infinity while count is 0 */
    int exponent;
    uint64_t bins[SIDES][BINS]; /* by magnitude; zeros are in the first bin of POSITIVE */
};

void sl_observer_clear(sl_observer *observer) {
    observer->count = observer->not_finite = 0;
    observer->low = INFINITY;
    observer->high = -INFINITY;
    observer->exponent = LEAST_EXPONENT;
    memset(observer->bins, 0, sizeof observer->bins);
}

sl_status sl_observer_create(const sl_allocator *allocator, sl_observer **out) {
    sl_allocator own = sl_allocator_of(allocator);
    void *block;
    *out = NULL;
    SL_TRY(sl_mem_alloc(&own, sizeof(sl_observer), &block));
    *out = block;
    (*out)->allocator = own;
    sl_observer_clear(*out);
    return SL_OK;
}

void sl_observer_free(sl_observer *observer) {
    if (!observer) return;
    sl_allocator own = observer->allocator;
    SL_FREE(&own, observer);
}

static void widen_bins(sl_observer *observer, int exponent) {
    if (exponent <= observer->exponent) return;
    int shift = exponent - observer->exponent;
    observer->exponent = exponent;
    for (int side = 0; side < SIDES; side++) {
        uint64_t *bins = observer->bins[side];
        for (size_t i = 1; i < BINS; i++) {
            uint64_t moved = bins[i];
            bins[i] = 0;
            bins[shift < BITS ? i >> shift : 0] += moved;
        }
    }
}

static double largest_magnitude(const sl_observer *observer) {
    double low = -(double)observer->low, high = (double)observer->high;
    return low > high ? low : high;
}

static void widen_to_extremes(sl_observer *observer) {
    int exponent = LEAST_EXPONENT;
    double most = largest_magnitude(observer);
    if (most > 0) (void)frexp(most, &exponent);
    widen_bins(observer, exponent);
    /* Adding 0.0 drops the sign of a zero, which would depend on the order of values. */
    observer->low += 0.0F;
    observer->high += 0.0F;
}

void sl_observer_add(sl_observer *observer, const float *values, size_t n) {
    uint64_t finite = 0;
    float low = observer->low, high = observer->high;
    for (size_t i = 0; i < n; i++) {
        float value = values[i];
        if (!isfinite(value)) continue;
        finite++;
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    observer->not_finite += n - finite;
    if (!finite) return;
    observer->count += finite;
    observer->low = low;
    observer->high = high;
    widen_to_extremes(observer);
    double inverse = ldexp(1, BITS - observer->exponent);
    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i]))
            observer->bins[values[i] < 0 ? NEGATIVE : POSITIVE][(size_t)(fabs((double)values[i]) * inverse)]++;
}

void sl_observer_merge(sl_observer *into, const sl_observer *from) {
    into->not_finite += from->not_finite;
    if (!from->count) return;
    into->count += from->count;
    into->low = from->low < into->low ? from->low : into->low;
    into->high = from->high > into->high ? from->high : into->high;
    widen_to_extremes(into);
    int shift = into->exponent - from->exponent;
    for (int side = 0; side < SIDES; side++)
        for (size_t i = 0; i < BINS; i++)
            into->bins[side][shift < BITS ? i >> shift : 0] += from->bins[side][i];
}

sl_observed sl_observer_seen(const sl_observer *observer) {
    sl_observed seen = {.count = observer->count, .not_finite = observer->not_finite};
    if (seen.count) {
        seen.low = observer->low;
        seen.high = observer->high;
    }
    return seen;
}

int sl_calibration_exists(sl_calibration method) {
    return (unsigned)method < SL_CALIBRATIONS;
}

sl_range_rule sl_range_rule_of(sl_calibration method, int symmetric) {
    return (sl_range_rule){
        .method = method, .quantile = SL_RANGE_QUANTILE_DEFAULT, .symmetric = symmetric, .levels = 256};
}

/* ---- From the ends of a range to codes ---- */

static sl_status check_rule(const sl_range_rule *rule) {
    if (rule->levels < 4 || rule->levels > SL_RANGE_MAX_LEVELS || rule->levels % 2)
        return sl_fail(SL_EINVAL, "levels are %u; give an even number of 4 to %u", rule->levels, SL_RANGE_MAX_LEVELS);
    if (!sl_calibration_exists(rule->method))
        return sl_fail(SL_EINVAL, "calibration %d is none of sl_calibration", (int)rule->method);
    if (rule->method == SL_CALIBRATION_QUANTILE && !(rule->quantile >= 0 && rule->quantile < 1))
        return sl_fail(SL_EINVAL, "the quantile is %g; give a share of 0 to below 1", rule->quantile);
    return SL_OK;
}

/* Rounds to the nearest integer, ties to even, for magnitudes below 2^51. Larger ones stay larger than any code. */
static double round_to_even(double value) {
    return value + 0x1.8p52 - 0x1.8p52;
}

static double clamp(double value, double low, double high) {
    return value < low ? low : value > high ? high : value;
}

static float float_of(double value) {
    return (float)clamp(value, -(double)FLT_MAX, (double)FLT_MAX);
}

/* Parameters: low <= 0 <= high, both finite. */
static sl_quant_range make_range(double low, double high, const sl_range_rule *rule) {
    double first = 0, last = rule->levels - 1, zero = 0, scale;
    if (rule->symmetric) {
        last = rule->levels / 2 - 1;
        first = -last;
        scale = (-low > high ? -low : high) / last;
    } else {
        scale = (high - low) / last;
    }
    float single = scale > 0 ? (float)scale : 1;
    single = single < FLT_MIN ? FLT_MIN : single;
    if (!rule->symmetric) zero = clamp(round_to_even(-low / (double)single), first, last);
    return (sl_quant_range){.scale = single,
                            .zero = (int)zero,
                            .low = float_of((first - zero) * (double)single),
                            .high = float_of((last - zero) * (double)single)};
}

sl_status sl_quant_range_of(double low, double high, const sl_range_rule *rule, sl_quant_range *out) {
    SL_TRY(check_rule(rule));
    if (!isfinite(low) || !isfinite(high) || fabs(low) > (double)FLT_MAX || fabs(high) > (double)FLT_MAX)
        return sl_fail(SL_EVALUE, "the range of values is %g to %g; both ends must be finite floats", low, high);
    if (low > high) return sl_fail(SL_EINVAL, "the range of values is %g to %g; give the lower end first", low, high);
    *out = make_range(low < 0 ? low : 0, high > 0 ? high : 0, rule);
    return SL_OK;
}

/* ---- Quantile ---- */

static double bin_width(const sl_observer *observer) {
    return ldexp(1, observer->exponent - BITS);
}

/* Returns the smallest edge of a bin with at most `allowed` values beyond it, on the sides `first` to `last`. */
static double tail_edge(const sl_observer *observer, int first, int last, double allowed) {
    uint64_t beyond = 0;
    for (size_t i = BINS; i-- > 0;) {
        for (int side = first; side <= last; side++)
            beyond += observer->bins[side][i];
        if ((double)beyond > allowed) return (double)(i + 1) * bin_width(observer);
    }
    return 0;
}

/* Narrows a range. As in all methods below, *low and *high are the minimum and maximum at first, widened to contain
 * 0. */
static void narrow_range(double low, double high, double *kept_low, double *kept_high) {
    if (low > *kept_low) *kept_low = low;
    if (high < *kept_high) *kept_high = high;
}

static sl_status find_quantile(const sl_observer *observer, const sl_range_rule *rule, double *low, double *high) {
    double allowed = rule->quantile * (double)observer->count;
    if (rule->symmetric) {
        double edge = tail_edge(observer, POSITIVE, NEGATIVE, allowed);
        narrow_range(-edge, edge, low, high);
    } else {
        narrow_range(-tail_edge(observer, NEGATIVE, NEGATIVE, allowed / 2),
                     tail_edge(observer, POSITIVE, POSITIVE, allowed / 2), low, high);
    }
    return SL_OK;
}

/* ---- Entropy (Migacz 2017, 8-bit Inference with TensorRT) ---- */

/* It follows MXNet's _get_optimal_threshold and ONNX Runtime's get_entropy_threshold. */

enum { ENTROPY_BITS = 11, ENTROPY_BINS = 1 << ENTROPY_BITS };

/* A count of 0 has no logarithm. Each empty bin gets this much, taken from the others in equal parts. */
#define SMOOTHING 1e-4

/* The histogram clipped after bin n - 1. The `beyond` larger values count in that bin. */
typedef struct clipped_bins {
    const double *bins;
    size_t n;
    double beyond;
    size_t levels; /* at most n */
} clipped_bins;

static double clipped_count(const clipped_bins *p, size_t i) {
    return i + 1 == p->n ? p->bins[i] + p->beyond : p->bins[i];
}

/* A level has n / levels bins; the last one has the remainder too. */
static size_t end_of_level(const clipped_bins *p, size_t level) {
    return level + 1 == p->levels ? p->n : (level + 1) * (p->n / p->levels);
}

/* Returns a level's average over its filled bins, without the values beyond. */
static double level_average(const clipped_bins *p, size_t level, size_t *filled) {
    double sum = 0;
    size_t end = end_of_level(p, level);
    *filled = 0;
    for (size_t i = level * (p->n / p->levels); i < end; i++) {
        sum += p->bins[i];
        *filled += clipped_count(p, i) > 0;
    }
    return *filled ? sum / (double)*filled : 0;
}

static double kl_divergence(const clipped_bins *p) {
    size_t filled, filled_p = 0, filled_q = 0;
    double sum = 0, result = 0;
    for (size_t level = 0; level < p->levels; level++) {
        double part = level_average(p, level, &filled);
        sum += part * (double)filled;
        filled_p += filled;
        if (part > 0) filled_q += filled;
    }
    if (!filled_q) return INFINITY;
    double whole = sum + p->beyond, give_p = SMOOTHING * (double)(p->n - filled_p) / (double)filled_p,
           give_q = SMOOTHING * (double)(p->n - filled_q) / (double)filled_q;
    double both_empty = SMOOTHING / whole * log(sum / whole);
    for (size_t level = 0; level < p->levels; level++) {
        size_t end = end_of_level(p, level);
        double part = level_average(p, level, &filled), q = (part > 0 ? part - give_q : SMOOTHING) / sum;
        for (size_t i = level * (p->n / p->levels); i < end; i++) {
            double kept = clipped_count(p, i), share = (kept - give_p) / whole;
            result += kept > 0 ? share * log(share / q) : both_empty;
        }
    }
    return result;
}

static sl_status find_entropy(const sl_observer *observer, const sl_range_rule *rule, double *low, double *high) {
    double bins[ENTROPY_BINS] = {0}, width = ldexp(1, observer->exponent - ENTROPY_BITS),
           most = largest_magnitude(observer);
    for (size_t i = 0; i < BINS; i++)
        bins[i >> (BITS - ENTROPY_BITS)] += (double)observer->bins[POSITIVE][i] + (double)observer->bins[NEGATIVE][i];
    size_t used = (size_t)(most / width) + 1, best = used, one_sided = *low >= 0 || *high <= 0;
    clipped_bins p = {.bins = bins, .levels = one_sided && !rule->symmetric ? rule->levels : rule->levels / 2};
    double least = INFINITY;
    /* Clips from the largest bin down, so that `beyond` is a sum of whole numbers. */
    for (p.n = used; p.n >= p.levels; p.n--) {
        double found = kl_divergence(&p);
        if (found <= least) {
            least = found;
            best = p.n;
        }
        p.beyond += bins[p.n - 1];
    }
    narrow_range(-(double)best * width, (double)best * width, low, high);
    return SL_OK;
}

/* ---- Mean squared error ---- */

/* A filled bin: its middle and its count. */
typedef struct mass {
    double value, count;
} mass;

static double squared_error(const mass *masses, size_t n, const sl_quant_range *range) {
    double scale = (double)range->scale, inverse = 1 / scale, sum = 0;
    double first = round_to_even((double)range->low * inverse), last = round_to_even((double)range->high * inverse);
    for (size_t i = 0; i < n; i++) {
        double off = masses[i].value - scale * clamp(round_to_even(masses[i].value * inverse), first, last);
        sum += masses[i].count * off * off;
    }
    return sum;
}

static size_t fill_masses(const sl_observer *observer, mass *masses) {
    size_t n = 0;
    double width = bin_width(observer);
    for (int side = 0; side < SIDES; side++)
        for (size_t i = 0; i < BINS; i++) {
            if (!observer->bins[side][i]) continue;
            double middle = ((double)i + 0.5) * width;
            masses[n++] =
                (mass){.value = side == NEGATIVE ? -middle : middle, .count = (double)observer->bins[side][i]};
        }
    return n;
}

/* A clip keeps clip / FULL_RANGE of an extreme. The search tries every COARSE-th clip, then all near the best. */
enum { FULL_RANGE = 512, COARSE = 16 };

typedef struct clip_search {
    const mass *masses;
    size_t n;
    const sl_range_rule *rule;
    double low, high; /* minimum and maximum */
    double least;     /* the least error so far, and its clips */
    int low_clip, high_clip;
} clip_search;

/* Tries the clips of both ends, from clips[0] down to clips[1]. One clip serves both ends if the range is symmetric or
 * one end is 0. */
static void try_clips(clip_search *search, const int low_clips[2], const int high_clips[2], int step) {
    int one_clip = search->rule->symmetric || search->low >= 0 || search->high <= 0;
    for (int b = high_clips[0]; b >= high_clips[1]; b -= step)
        for (int a = one_clip ? b : low_clips[0]; a >= (one_clip ? b : low_clips[1]); a -= step) {
            sl_quant_range range =
                make_range(search->low * a / FULL_RANGE, search->high * b / FULL_RANGE, search->rule);
            double error = squared_error(search->masses, search->n, &range);
            if (!(error < search->least)) continue;
            search->least = error;
            search->low_clip = a;
            search->high_clip = b;
        }
}

static void clips_around(int clip, int clips[2]) {
    clips[0] = clip + COARSE - 1 < FULL_RANGE ? clip + COARSE - 1 : FULL_RANGE;
    clips[1] = clip - COARSE + 1 > 1 ? clip - COARSE + 1 : 1;
}

static sl_status find_mse(const sl_observer *observer, const sl_range_rule *rule, double *low, double *high) {
    size_t size = (size_t)SIDES * BINS * sizeof(mass);
    void *block;
    SL_TRY(sl_mem_alloc_raw(&observer->allocator, size, &block));
    clip_search search = {.masses = block,
                          .n = fill_masses(observer, block),
                          .rule = rule,
                          .low = *low,
                          .high = *high,
                          .least = INFINITY,
                          .low_clip = FULL_RANGE,
                          .high_clip = FULL_RANGE};
    int low_clips[2] = {FULL_RANGE, COARSE}, high_clips[2] = {FULL_RANGE, COARSE};
    try_clips(&search, low_clips, high_clips, COARSE);
    clips_around(search.low_clip, low_clips);
    clips_around(search.high_clip, high_clips);
    try_clips(&search, low_clips, high_clips, 1);
    *low = search.low * search.low_clip / FULL_RANGE;
    *high = search.high * search.high_clip / FULL_RANGE;
    sl_mem_free(&observer->allocator, block, size);
    return SL_OK;
}

/* A method: narrows a range that goes from minimum to maximum. Errors: SL_ENOMEM. */
typedef sl_status find_fn(const sl_observer *observer, const sl_range_rule *rule, double *low, double *high);

static sl_status find_minmax(const sl_observer *observer, const sl_range_rule *rule, double *low, double *high) {
    (void)observer, (void)rule, (void)low, (void)high;
    return SL_OK;
}

static find_fn *const methods[SL_CALIBRATIONS] = {[SL_CALIBRATION_MINMAX] = find_minmax,
                                                  [SL_CALIBRATION_QUANTILE] = find_quantile,
                                                  [SL_CALIBRATION_ENTROPY] = find_entropy,
                                                  [SL_CALIBRATION_MSE] = find_mse};

sl_status sl_observer_range(const sl_observer *observer, const sl_range_rule *rule, sl_quant_range *out) {
    SL_TRY(check_rule(rule));
    if (observer->not_finite && !rule->skip_not_finite)
        return sl_fail(SL_EVALUE,
                       "%" PRIu64 " of %" PRIu64 " observed values are not finite; calibrate with rows that give none",
                       observer->not_finite, observer->not_finite + observer->count);
    if (!observer->count) return sl_fail(SL_EINVAL, "no finite value was observed; calibrate with one row at least");
    double low = observer->low < 0 ? (double)observer->low : 0, high = observer->high > 0 ? (double)observer->high : 0;
    if (low < high) SL_TRY(methods[rule->method](observer, rule, &low, &high));
    *out = make_range(low, high, rule);
    return SL_OK;
}
