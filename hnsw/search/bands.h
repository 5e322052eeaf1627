/*
 * The part of an index that a query scans: so many of the partitions nearest to it. With bands of falling length, a
 * query scans the bands that may score as high as so many partitions do.
 * By inner product a partition's longest vectors score highest. The rest of a near partition is worth less than the
 * first vectors of one that is farther away.
 */
#ifndef SL_HNSW_SEARCH_BANDS_H
#define SL_HNSW_SEARCH_BANDS_H

#include "hnsw/graph/index.h"

/* How many of the nearest partitions a caller keeps for sl_bands_choose, for so many probes. sl_bands_choose may leave
 * a quarter more than that. */
size_t sl_bands_candidates(const sl_partitions *partitions, size_t probes);

/* Words of scratch that sl_bands_choose takes. */
size_t sl_bands_scratch(const sl_partitions *partitions);

/* Counts the first bands of a partition that may score `least` or more, but for rounding; at least one. `bands`: the
 * partition's lengths. `score`: the partition's own. Both scores are above 0. */
size_t sl_bands_above(const uint8_t *bands, float score, float least);

/* Replaces the partitions in `nearest`, none of whose scores is NaN, by band prefixes: see sl_partition_prefix. A band
 * prefix of the nearest partition comes first: what it holds sets a threshold that little else passes. The others are
 * in no order. Without bands `probes` partitions are left, or up to a quarter more. With bands a query comes to the
 * same score in all partitions that it looks at. It looks at three sixteenths at least of `probes` of these, or of up
 * to a quarter more. `scratch`: sl_bands_scratch words. */
void sl_bands_choose(const sl_kernels *kernels, const sl_partitions *partitions, size_t probes, sl_scan *nearest,
                     uint32_t *scratch);

#endif
