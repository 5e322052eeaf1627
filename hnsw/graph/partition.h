/* Partitions: runs of near nodes with consecutive numbers, and a centroid for each run. A scan reads only the runs
 * whose centroids are nearest to a query. Many partitions form groups in the same way: runs of near partitions, with a
 * centroid each. A query then compares only the centroids of the nearest groups. */
#ifndef SL_HNSW_GRAPH_PARTITION_H
#define SL_HNSW_GRAPH_PARTITION_H

#include "base/thread.h"
#include "hnsw/graph/index.h"

/* Rows of a partition on average. Larger indexes have SL_MAX_PARTITIONS partitions, which are larger. */
#define SL_PARTITION_ROWS 256u
#define SL_MAX_PARTITIONS 16384u
/* Partitions of a group on average. */
#define SL_GROUP_PARTITIONS 16u
#define SL_MAX_GROUPS       (SL_MAX_PARTITIONS / SL_GROUP_PARTITIONS)
/* Bands of a partition under IP, where the nodes lie by falling length. A query looks at few nodes of most partitions,
 * so the first bands are the smallest. The first four bands have one 256th of the nodes each. The next bands come in
 * pairs of two 256ths, four 256ths, and so on to two bands of a quarter. */
#define SL_BAND_BITS       4u
#define SL_PARTITION_BANDS (1u << SL_BAND_BITS)

/* The nodes of partition p in an index of n nodes. The range is valid whatever the file says. */
static inline sl_range sl_partition_nodes(const sl_partitions *partitions, size_t p, size_t n) {
    size_t first = partitions->starts[p], end = partitions->starts[p + 1];
    if (end > n) end = n;
    return (sl_range){first < end ? first : end, end};
}

/* Counts the nodes in the first `bands` bands of a partition of `count` nodes. */
static inline size_t sl_partition_band_rows(size_t count, size_t bands) {
    size_t parts = bands < 2 ? bands : (2 + bands % 2) << (bands / 2 - 1);
    return (count * parts + 255) / 256;
}

/* Counts the nodes in a band prefix of a partition of `count` nodes. A query looks at a band prefix: the first bands of
 * a partition. Prefix number p << band_bits is all of partition p. Each further number has one band less. */
static inline size_t sl_partition_prefix_rows(const sl_partitions *partitions, size_t prefix, size_t count) {
    size_t left_out = prefix & (((size_t)1 << partitions->band_bits) - 1);
    return sl_partition_band_rows(count, SL_PARTITION_BANDS - left_out);
}

/* The nodes of a band prefix, in an index of n nodes. */
static inline sl_range sl_partition_prefix(const sl_partitions *partitions, size_t prefix, size_t n) {
    sl_range range = sl_partition_nodes(partitions, prefix >> partitions->band_bits, n);
    range.end = range.first + sl_partition_prefix_rows(partitions, prefix, range.end - range.first);
    return range;
}

/* The nodes without a partition, in an index of n nodes. */
static inline sl_range sl_partition_rest(const sl_partitions *partitions, size_t n) {
    size_t first = partitions->count ? partitions->starts[partitions->count] : 0;
    return (sl_range){first < n ? first : n, n};
}

/* Settles the codec of the centroids: I8, or F32 under L2. Errors: as sl_codec_init. */
sl_status sl_partition_codec(const sl_graph *graph, sl_codes codes, sl_codec *codec);

/* Brings a query into the form that scores centroids.
 * Parameters: `buffer` has sl_query_size bytes of the centroids' codec; `floats` has room for dim elements. */
void sl_partition_encode_query(const sl_graph *graph, const void *query, sl_dtype dtype, void *buffer, float *floats,
                               sl_query_code *out);

/* Frees partitions that the index owns. Partitions in a mapping belong to the mapping. */
void sl_partitions_free(const sl_allocator *allocator, sl_partitions *partitions);

/* Loads the partitions and groups of the index's store, if the store has them. An index in memory copies them; a mapped
 * index points into the mapping. The function checks their number, and not their contents.
 * Errors: SL_ECORRUPT, SL_ENOMEM, SL_ECANCELED. */
sl_status sl_partitions_load(sl_index *index, sl_progress *progress);

/* Checks that partitions and groups are as sl_partitions describes them. Errors: SL_ECORRUPT. */
sl_status sl_partitions_check(const sl_graph *graph);

#endif
