/*
 * Which part of an index a query scans: so many of the partitions nearest to it, or, where a partition's nodes lie in
 * bands of falling length, the bands that may score as high as what so many partitions hold. By inner product a
 * partition's longest vectors score highest: what the rest of a near one holds is worth less than the first of one that
 * is farther away.
 */
#ifndef SL_HNSW_SEARCH_BANDS_H
#define SL_HNSW_SEARCH_BANDS_H

#include "hnsw/graph/index.h"

/* How many of the nearest partitions are to be kept to choose shares from, for so many probes; sl_bands_choose may
 * leave a quarter more. */
size_t sl_bands_partitions(const sl_partitions *partitions, size_t probes);

size_t sl_bands_scratch(const sl_partitions *partitions);

/* Of partitions and their scores, none of which is NaN, leaves shares: see sl_partition_share. Without bands those are
 * `probes` partitions, or up to a quarter more. With bands a query comes to the same score in all it looks at, and
 * `probes` partitions, or up to a quarter more, are those of which it looks at three sixteenths at least. A share of
 * the nearest partition comes first: what it holds sets a threshold that little else passes; scores are not in order
 * then. `scratch`:
 * sl_bands_scratch words. */
void sl_bands_choose(const sl_kernels *kernels, const sl_partitions *partitions, size_t probes, sl_scan *nearest,
                     uint32_t *scratch);

#endif
