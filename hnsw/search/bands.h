/*
 * Chooses which bands of the near partitions a query scans.
 *
 * Without bands, a query scans all of the `probes` nearest partitions. Under inner product, a partition's nodes lie in
 * bands of falling length. The long vectors of a farther partition may score above the short ones of a near partition.
 * So the query first finds a least score: in `probes` partitions, the band that begins at three sixteenths may reach
 * it. Then it scans the bands of all partitions that may reach this score.
 */
#ifndef SL_HNSW_SEARCH_BANDS_H
#define SL_HNSW_SEARCH_BANDS_H

#include "hnsw/graph/index.h"

/* Returns how many of the nearest partitions to give to sl_bands_choose. It may leave a quarter more than this number.
 */
size_t sl_bands_candidates(const sl_partitions *partitions, size_t probes);

/* Returns the 32-bit words of scratch that sl_bands_choose needs. */
size_t sl_bands_scratch(const sl_partitions *partitions);

/* Counts a partition's first bands that may score `least` or more, up to rounding. Returns at least one.
 * Parameters: bands: the lengths of the partition's bands. score: the score of the partition's centroid. Both scores
 * are above 0. */
size_t sl_bands_above(const uint8_t *bands, float score, float least);

/*
 * Replaces the partitions in `nearest` by band prefixes: see sl_partition_prefix. No score is NaN.
 *
 * A prefix of the nearest partition comes first, because its hits set a threshold that few other rows pass. The others
 * have no order. Without bands, `probes` to 1.25 `probes` partitions are left. With bands, all prefixes end at the same
 * score. In at least `probes` partitions the prefix then has at least the first three sixteenths of the nodes.
 * Parameters: scratch: sl_bands_scratch words.
 */
void sl_bands_choose(const sl_kernels *kernels, const sl_partitions *partitions, size_t probes, sl_scan *nearest,
                     uint32_t *scratch);

#endif
