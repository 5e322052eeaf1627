/* What one pass over the training rows gathers of a feature. */
#ifndef SL_RANKER_FIT_COLLECT_H
#define SL_RANKER_FIT_COLLECT_H

#include "ranker/encode.h"
#include "ranker/vocabulary.h"

/* Quantiles are exact up to so many values; of more, as many are drawn, each with the same chance (Vitter 1985,
 * algorithm R), by random numbers that depend on the spec's seed and the value's place alone. */
#define SL_QUANTILE_SAMPLE ((size_t)1 << 20)

typedef struct sl_collector {
    const sl_allocator *allocator;
    /* Numbers: count, mean and sum of squared deviations (Welford 1962). */
    uint64_t count;
    double mean, deviation, low, high;
    /* Quantiles. */
    double *sample;
    size_t sample_count, sample_room;
    /* Categories. */
    sl_vocabulary *texts;
    uint64_t *counts; /* of each text */
    size_t count_room, limit;
} sl_collector;

void sl_collector_free(sl_collector *collector);
void sl_collect_number(sl_collector *collector, double value);
sl_status sl_collect_quantile(sl_collector *collector, uint64_t seed, double value);
/* Errors: SL_ELIMIT where there are more than `limit` categories. */
sl_status sl_collect_key(sl_collector *collector, sl_key *key);

/* Boundaries of `quantiles` equally filled buckets: rising, fewer where values repeat. The sample is put in order.
 * *out, of *count doubles, is the allocator's. */
sl_status sl_collected_boundaries(sl_collector *collector, size_t quantiles, double **out, size_t *count);
/* Numbers of the texts that were met min_count times, the most frequent first and equally frequent ones by their
 * bytes, `keep` of them where it is not 0; *out has sl_vocabulary_count(texts) entries. */
sl_status sl_collected_order(const sl_collector *collector, size_t min_count, size_t keep, uint32_t **out,
                             size_t *count);
/* Numbers of all texts in their order as values: as numbers where all are, else by their bytes. */
sl_status sl_collected_values(const sl_collector *collector, uint32_t **out);

#endif
