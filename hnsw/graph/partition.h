/* Partitions: runs of near nodes with consecutive numbers, each with a centroid. A scan reads only the runs whose
 * centroids are nearest to the query. If there are many partitions, runs of them form groups with centroids too, and a
 * query compares only the centroids of the nearest groups. */
#ifndef SL_HNSW_GRAPH_PARTITION_H
#define SL_HNSW_GRAPH_PARTITION_H

#include "base/thread.h"
#include "hnsw/graph/index.h"

/* Mean rows of a partition; docs/internals/partitions.md says why so many. An index with SL_MAX_PARTITIONS partitions
 * has larger partitions. */
#define SL_PARTITION_ROWS 256u
#define SL_MAX_PARTITIONS 16384u
/* Mean partitions of a group. */
#define SL_GROUP_PARTITIONS 16u
#define SL_MAX_GROUPS       (SL_MAX_PARTITIONS / SL_GROUP_PARTITIONS)
/* Bands of a partition under IP. Its nodes lie by falling length, and most queries look at few of them, so the first
 * bands are the smallest. Four bands have one 256th of the nodes each. Pairs follow with two 256ths each, four 256ths,
 * and so on up to a quarter. */
#define SL_BAND_BITS       4u
#define SL_PARTITION_BANDS (1u << SL_BAND_BITS)

/* The nodes of partition p in an index of n nodes. The range is valid whatever the file holds. */
static inline sl_range sl_partition_nodes(const sl_partitions *partitions, size_t p, size_t n) {
    size_t first = partitions->starts[p], end = partitions->starts[p + 1];
    if (end > n) end = n;
    return (sl_range){first < end ? first : end, end};
}

/* Nodes in the first `bands` bands of a partition with `count` nodes. */
static inline size_t sl_partition_band_rows(size_t count, size_t bands) {
    size_t parts = bands < 2 ? bands : (2 + bands % 2) << (bands / 2 - 1);
    return (count * parts + 255) / 256;
}

/* Nodes in a band prefix of a partition with `count` nodes. A prefix is the first bands of a partition. The prefix with
 * number p << band_bits is all of partition p. Each further number leaves out one more band, the shortest vectors
 * first. */
static inline size_t sl_partition_prefix_rows(const sl_partitions *partitions, size_t prefix, size_t count) {
    size_t left_out = prefix & (((size_t)1 << partitions->band_bits) - 1);
    return sl_partition_band_rows(count, SL_PARTITION_BANDS - left_out);
}

/* The nodes of a band prefix in an index of n nodes. */
static inline sl_range sl_partition_prefix(const sl_partitions *partitions, size_t prefix, size_t n) {
    sl_range range = sl_partition_nodes(partitions, prefix >> partitions->band_bits, n);
    range.end = range.first + sl_partition_prefix_rows(partitions, prefix, range.end - range.first);
    return range;
}

/* The nodes without a partition in an index of n nodes. */
static inline sl_range sl_partition_rest(const sl_partitions *partitions, size_t n) {
    size_t first = partitions->count ? partitions->starts[partitions->count] : 0;
    return (sl_range){first < n ? first : n, n};
}

/* Sets the codec of centroids: I8, or F32 under L2. Errors: as of sl_codec_init. */
sl_status sl_partition_codec(const sl_graph *graph, sl_codes codes, sl_codec *codec);

/* Encodes a query for scoring centroids.
 * Parameters: `buffer` has sl_query_size bytes of the centroids' codec; `floats` has room for dim elements. */
void sl_partition_encode_query(const sl_graph *graph, const void *query, sl_dtype dtype, void *buffer, float *floats,
                               sl_query_code *out);

/* Frees partitions that the index owns, not those in a mapping. */
void sl_partitions_free(const sl_allocator *allocator, sl_partitions *partitions);
/* Bytes of the partitions' arrays. */
size_t sl_partitions_size(const sl_partitions *partitions);

/* Loads partitions and groups from the index's file, if it has them. An index in memory copies them; a mapped one
 * points into the mapping. Checks their number, but not their content.
 * Errors: SL_ECORRUPT, SL_ENOMEM, SL_ECANCELED. */
sl_status sl_partitions_load(sl_index *index, sl_progress *progress);

/* Checks that partitions and groups are as sl_partitions says. Errors: SL_ECORRUPT. */
sl_status sl_partitions_check(const sl_graph *graph);

/* Returns the partition that holds a node; the node must have one. */
size_t sl_partition_of(const sl_partitions *partitions, size_t node);

#endif
