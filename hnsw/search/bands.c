#include "hnsw/search/bands.h"
#include "hnsw/graph/partition.h"

#include <math.h>
#include <string.h>

/* The band that begins at three sixteenths of a partition. The number of partitions scanned down to this band predicts
 * best how far to scan in all. Numbers of rows, of bands, or of partitions scanned to another band predict it less well
 * (docs/internals/partitions.md). */
enum { MIDDLE = 11 };
_Static_assert(MIDDLE < SL_PARTITION_BANDS, "a band");

/* A query scans bands of at most this many partitions per probe, and mostly of some ten. */
enum { TOUCHED = 16 };

size_t sl_bands_candidates(const sl_partitions *partitions, size_t probes) {
    size_t keep = partitions->band_bits ? TOUCHED * probes : probes;
    return keep < partitions->count ? keep : partitions->count;
}

/* Returns the places for the nearest partitions that may be left, and for the whole registers that kernels write behind
 * them. */
static size_t nearest_room(const sl_partitions *partitions) {
    return partitions->count + partitions->count / 4 + 32;
}

size_t sl_bands_scratch(const sl_partitions *partitions) {
    return partitions->band_bits ? 2 * nearest_room(partitions) : 0;
}

/* Returns the score that the middle band of at least `probes` partitions may reach. A band's longest vector may score
 * what its partition's longest may, times the ratio of their lengths. The kernel halves the scores in no fixed way, so
 * this takes the least score that is left. */
static float middle_score(const sl_kernels *kernels, const sl_partitions *partitions, size_t probes,
                          const sl_scan *nearest, uint32_t *scratch) {
    float *scores = (float *)(void *)(scratch + nearest_room(partitions)), least = INFINITY;
    sl_scan middles = {.least = -INFINITY, .count = nearest->count, .ids = scratch, .scores = scores};
    const uint8_t *bands = partitions->bands + MIDDLE;
    for (uint32_t i = 0; i < nearest->count; i++) {
        float middle = nearest->scores[i] * ((float)bands[(size_t)nearest->ids[i] * SL_PARTITION_BANDS] * (1 / 255.0f));
        scores[i] = middle == middle ? middle : -INFINITY; /* a damaged file may hold an infinite score */
    }
    memcpy(scratch, nearest->ids, nearest->count * sizeof *scratch);
    kernels->tile.best(&middles, (uint32_t)probes, 1);
    for (uint32_t i = 0; i < middles.count; i++)
        least = scores[i] < least ? scores[i] : least;
    return least;
}

size_t sl_bands_above(const uint8_t *bands, float score, float least) {
    float shortest = 255 * (least / score) - 0.5f;
    int whole = shortest > 0 ? (int)shortest : 0;
    unsigned above = 0; /* unsigned, because gcc 12 miscounts if it's a byte */
    for (size_t b = 0; b < SL_PARTITION_BANDS; b++)
        above += bands[b] > whole;
    return above ? above : 1;
}

/* Chooses bands, or `probes` whole partitions if lengths can't order them. That is so if all vectors score alike, as
 * for a query of zeros, and if the scores are negative, so that shorter vectors score more. */
static void choose_bands(const sl_kernels *kernels, const sl_partitions *partitions, size_t probes, sl_scan *nearest,
                         uint32_t *scratch) {
    kernels->tile.best(nearest, (uint32_t)sl_bands_candidates(partitions, probes), 0);
    float least = middle_score(kernels, partitions, probes, nearest, scratch);
    int whole = nearest->count <= probes || !(least > 0);
    uint32_t kept = 0;
    if (whole) kernels->tile.best(nearest, (uint32_t)probes, 0);
    for (size_t i = 0; i < nearest->count; i++) {
        uint32_t p = nearest->ids[i];
        float score = nearest->scores[i];
        if (!whole && !(score >= least)) continue;
        size_t bands = SL_PARTITION_BANDS;
        if (!whole) bands = sl_bands_above(partitions->bands + (size_t)p * SL_PARTITION_BANDS, score, least);
        nearest->ids[kept] = (uint32_t)((p + 1) * SL_PARTITION_BANDS - bands);
        nearest->scores[kept++] = score;
    }
    nearest->count = kept;
}

static void put_best_first(sl_scan *nearest) {
    uint32_t best = 0;
    if (!nearest->count) return;
    for (uint32_t i = 1; i < nearest->count; i++)
        if (nearest->scores[i] > nearest->scores[best]) best = i;
    uint32_t id = nearest->ids[best];
    nearest->ids[best] = nearest->ids[0];
    nearest->ids[0] = id;
}

void sl_bands_choose(const sl_kernels *kernels, const sl_partitions *partitions, size_t probes, sl_scan *nearest,
                     uint32_t *scratch) {
    if (partitions->band_bits)
        choose_bands(kernels, partitions, probes, nearest, scratch);
    else
        kernels->tile.best(nearest, (uint32_t)probes, 0);
    put_best_first(nearest);
}
