/*
 * Which part of each near partition a query scans.
 *
 * Without bands a query scans the `probes` nearest partitions. Under inner product a partition's nodes lie in bands of
 * falling length, and the longest vectors score highest: the rest of a near partition is worth less than the first
 * vectors of a farther one. So a query scans the bands, of any partition, that may score as high as `probes` whole
 * partitions would.
 */
#ifndef SL_HNSW_SEARCH_BANDS_H
#define SL_HNSW_SEARCH_BANDS_H

#include "hnsw/graph/index.h"

/* Returns how many of the nearest partitions the caller gives to sl_bands_choose. sl_bands_choose may leave a quarter
 * more. */
size_t sl_bands_candidates(const sl_partitions *partitions, size_t probes);

/* Returns the words of scratch that sl_bands_choose needs. */
size_t sl_bands_scratch(const sl_partitions *partitions);

/* Counts a partition's first bands that may score `least` or more, up to rounding; at least one.
 * Parameters: bands: the lengths of the partition's bands. score: the partition's. Both scores are above 0. */
size_t sl_bands_above(const uint8_t *bands, float score, float least);

/*
 * Replaces the partitions in `nearest` by band prefixes: see sl_partition_prefix. No score is NaN.
 *
 * A prefix of the nearest partition comes first: its hits set a threshold that few others pass. The rest has no order.
 * Without bands, `probes` to 1.25 `probes` partitions are left. With bands, all scanned prefixes end at the same score,
 * and hold at least three sixteenths of that many partitions.
 * Parameters: scratch: sl_bands_scratch words.
 */
void sl_bands_choose(const sl_kernels *kernels, const sl_partitions *partitions, size_t probes, sl_scan *nearest,
                     uint32_t *scratch);

#endif
