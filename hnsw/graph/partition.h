/* Partitions: near nodes numbered one after another, and a centroid for each run of them, so that a scan reads the runs
 * whose centroids are nearest to a query and nothing else. Where there are many, runs of near ones form groups in the
 * same way, so that one query need not look at all centroids either. */
#ifndef SL_HNSW_GRAPH_PARTITION_H
#define SL_HNSW_GRAPH_PARTITION_H

#include "base/thread.h"
#include "distance/codec/codec.h"

typedef struct sl_graph sl_graph; /* index.h */

/* Rows a partition has on average, until there are SL_MAX_PARTITIONS: from then on they grow. */
#define SL_PARTITION_ROWS 256u
#define SL_MAX_PARTITIONS 16384u
/* Partitions a group has on average. */
#define SL_GROUP_PARTITIONS 16u
#define SL_MAX_GROUPS       (SL_MAX_PARTITIONS / SL_GROUP_PARTITIONS)
/* Under IP a partition's nodes lie by falling length, in so many bands, two an octave: the first 256th, the second, the
 * third, the fourth, then as many as two 256ths, and again, then as four, and so on to a quarter, and again. Queries
 * look at few nodes of most partitions. */
#define SL_BAND_BITS       4u
#define SL_PARTITION_BANDS (1u << SL_BAND_BITS)

/* Of nodes; or groups, of partitions, whose numbers then stand where node numbers do. The arrays may lie in a file that
 * is not trusted: see sl_partition_nodes. */
typedef struct sl_partitions {
    size_t count;       /* 0: none were made */
    uint32_t *starts;   /* count + 1 node numbers, ascending from 0; partition p holds nodes starts[p] to
                           starts[p + 1] - 1. Nodes from the last on were added since and belong to none */
    sl_codec codec;     /* of the centroids: I8 codes of floats, of the metric IP where the index's is COSINE, else L2.
                           Under IP a centroid is the mean direction of a partition's vectors, times the length of the
                           longest, and its bias is no length but what the best of that length is likely to score above
                           it, for a query of length 1. That of a group is of its longest centroids */
    uint8_t *rows;      /* count code rows; codec.rows.base points here */
    unsigned band_bits; /* SL_BAND_BITS where there are bands, else 0 */
    uint8_t *bands; /* SL_PARTITION_BANDS a partition: the length of each band's longest in 255ths of the partition's,
                       rounded up; they fall. None of groups, where the metric is not IP, and of files without them */
} sl_partitions;

/* Nodes from first to end - 1. */
typedef struct sl_range {
    size_t first, end;
} sl_range;

/* The nodes of partition p of an index of n, whatever the file says. */
static inline sl_range sl_partition_nodes(const sl_partitions *partitions, size_t p, size_t n) {
    size_t first = partitions->starts[p], end = partitions->starts[p + 1];
    if (end > n) end = n;
    return (sl_range){first < end ? first : end, end};
}

/* How many of `count` nodes are in the first so many bands. */
static inline size_t sl_partition_banded(size_t count, size_t bands) {
    size_t parts = bands < 2 ? bands : (2 + bands % 2) << (bands / 2 - 1);
    return (count * parts + 255) / 256;
}

/* A query looks at a band prefix of a partition: at its first so many bands. The prefixes of partition p have numbers
 * from p << band_bits on; the first is all of p, and each further one has a band less. Returns how many of the
 * partition's `count` nodes a prefix holds. */
static inline size_t sl_partition_prefix_rows(const sl_partitions *partitions, size_t prefix, size_t count) {
    size_t left_out = prefix & (((size_t)1 << partitions->band_bits) - 1);
    return sl_partition_banded(count, SL_PARTITION_BANDS - left_out);
}

static inline sl_range sl_partition_prefix(const sl_partitions *partitions, size_t prefix, size_t n) {
    sl_range range = sl_partition_nodes(partitions, prefix >> partitions->band_bits, n);
    range.end = range.first + sl_partition_prefix_rows(partitions, prefix, range.end - range.first);
    return range;
}

/* The nodes that belong to no partition. */
static inline sl_range sl_partition_rest(const sl_partitions *partitions, size_t n) {
    size_t first = partitions->count ? partitions->starts[partitions->count] : 0;
    return (sl_range){first < n ? first : n, n};
}

/* build/partition_make.c: how many are made of n nodes; those that stay empty are left out later. */
size_t sl_partition_count(size_t n);
/* build/partition_make.c: into how many groups so many partitions go; 0 where they are few. */
size_t sl_partition_groups(size_t partitions);

/* partition.c: the geometry of the centroids' rows. */
sl_status sl_partition_codec(const sl_graph *graph, sl_codec *codec);

/* partition.c: a query's code over the centroids. `buffer`: sl_query_size of their codec; `floats`: dim. */
void sl_partition_ask(const sl_graph *graph, const void *query, sl_dtype dtype, void *buffer, float *floats,
                      sl_query_code *out);

/* partition.c: of the index's own, not those in a mapping. */
void sl_partitions_free(const sl_allocator *allocator, sl_partitions *partitions);

/* partition.c: those of the index's store and their groups, where it has them: copied where the index is in memory,
 * else as they lie in the mapping. Their number is checked, and what they hold is not. Errors: SL_ECORRUPT, SL_ENOMEM,
 * SL_ECANCELED. */
sl_status sl_partitions_load(sl_index *index, sl_progress *progress);

/* partition.c: SL_ECORRUPT where they, or their groups, are not what sl_partitions says. */
sl_status sl_partitions_check(const sl_graph *graph);

#endif
