/* Statistics of a feature, collected in one pass over the training rows. */
#ifndef SL_RANKER_FEATURES_FIT_COLLECT_H
#define SL_RANKER_FEATURES_FIT_COLLECT_H

#include "ranker/features/encode_cells.h"
#include "ranker/features/vocabulary.h"

/* Quantiles are exact up to this many values. From more values a sample of this size is drawn, each value with the same
 * chance (Vitter 1985, algorithm R). Only the spec's seed and the value's position decide the draw. */
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
    uint64_t *counts; /* count of each text */
    size_t count_room, limit;
} sl_collector;

void sl_collector_free(sl_collector *collector);
void sl_collect_number(sl_collector *collector, double value);
sl_status sl_collect_quantile(sl_collector *collector, uint64_t seed, double value);
/* Errors: SL_ELIMIT (more than `limit` categories). */
sl_status sl_collect_key(sl_collector *collector, sl_key *key);

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
