/* Statistics of a feature, collected in one pass over the training rows. */
#ifndef SL_RANKER_FEATURES_FIT_COLLECT_H
#define SL_RANKER_FEATURES_FIT_COLLECT_H

#include "base/ranks.h"
#include "ranker/features/encode_cells.h"
#include "ranker/features/vocabulary.h"

/* Quantiles are exact up to this many values. From more values the sample has this size, each value with the same
 * chance: it keeps the values of the smallest draws (bottom-k sampling, Cohen and Kaplan 2007). Only the spec's seed
 * and the value's position decide a draw, so parts of the rows can be collected apart. */
#define SL_QUANTILE_SAMPLE ((size_t)1 << 20)

typedef struct sl_sampled_value {
    uint64_t draw;
    double value;
} sl_sampled_value;

typedef struct sl_collector {
    const sl_allocator *allocator;
    /* Numbers. Exact sums do not depend on the order of rows. */
    uint64_t count;
    sl_exact_sum sum, squares;
    double low, high;
    /* Quantiles. The sample has up to twice SL_QUANTILE_SAMPLE values until it is cut. */
    sl_sampled_value *sample;
    size_t sample_count, sample_room;
    uint64_t largest_draw; /* no larger one enters the sample, once it was cut */
    /* Categories. */
    sl_vocabulary *texts;
    uint64_t *counts; /* count of each text */
    size_t count_room, limit;
} sl_collector;

void sl_collector_free(sl_collector *collector);
/* `is_squared`: the spread is asked for too. The number is then below 1e150. */
void sl_collect_number(sl_collector *collector, double value, int is_squared);
/* `position`: of the value's row, which no other row has. */
sl_status sl_collect_quantile(sl_collector *collector, uint64_t seed, uint64_t position, double value);
/* Errors: SL_ELIMIT (more than `limit` categories). */
sl_status sl_collect_key(sl_collector *collector, sl_key *key);

double sl_collector_mean(const sl_collector *collector);
/* The standard deviation; 1 without numbers. */
double sl_collector_spread(const sl_collector *collector);

/* Adds up the collectors of all ranks, each of `count` collectors. Errors: SL_ENOMEM; SL_ELIMIT, and *failed has the
 * number of the collector. */
sl_status sl_collectors_merge(sl_collector *collectors, size_t count, const sl_ranks *ranks, size_t *failed);

/* Makes the boundaries of `quantiles` equally filled buckets. Boundaries rise, and are fewer if values repeat. Sorts
 * the sample. The allocator owns *out, of *count doubles. */
sl_status sl_collector_boundaries(sl_collector *collector, size_t quantiles, double **out, size_t *count);
/* Lists the texts seen at least min_count times by falling count; equal counts by their bytes. Lists at most `keep`
 * texts if `keep` is not 0. *out has sl_vocabulary_count(texts) entries, of which the first *count are set. */
sl_status sl_collector_texts_by_count(sl_collector *collector, size_t min_count, size_t keep, uint32_t **out,
                                      size_t *count);
/* Lists all texts by value: in numeric order if all are numbers, else by their bytes. */
sl_status sl_collector_texts_by_value(const sl_collector *collector, uint32_t **out);

#endif
