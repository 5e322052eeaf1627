/* What one pass over the training rows collects for a feature. */
#ifndef SL_RANKER_FEATURES_FIT_COLLECT_H
#define SL_RANKER_FEATURES_FIT_COLLECT_H

#include "ranker/features/encode_cells.h"
#include "ranker/features/vocabulary.h"

/* Quantiles are exact up to this many values. Of more values, this many are drawn, each with the same chance (Vitter
 * 1985, algorithm R). Only the spec's seed and the value's place decide the draw. */
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
/* Errors: SL_ELIMIT (more than `limit` categories). */
sl_status sl_collect_key(sl_collector *collector, sl_key *key);

/* Makes the boundaries of `quantiles` equally filled buckets. They rise, and are fewer where values repeat. The sample
 * is sorted. *out, of *count doubles, belongs to the allocator. */
sl_status sl_collected_boundaries(sl_collector *collector, size_t quantiles, double **out, size_t *count);
/* Lists the numbers of texts that were met min_count times: the most frequent first, equally frequent ones by their
 * bytes. At most `keep` are listed where `keep` is not 0. *out has sl_vocabulary_count(texts) entries. */
sl_status sl_collected_order(sl_collector *collector, size_t min_count, size_t keep, uint32_t **out, size_t *count);
/* Lists the numbers of all texts in their order as values: as numbers if all are numbers, else by their bytes. */
sl_status sl_collected_values(const sl_collector *collector, uint32_t **out);

#endif
