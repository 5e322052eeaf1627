/* Making partitions of an index's nodes, and groups of the partitions. */
#ifndef SL_HNSW_BUILD_PARTITION_MAKE_H
#define SL_HNSW_BUILD_PARTITION_MAKE_H

#include "hnsw/graph/index.h"

/* How many partitions n nodes get. Partitions that stay empty are left out later. */
size_t sl_partition_count(size_t n);
/* How many groups this many partitions get; 0 for few partitions. */
size_t sl_partition_groups(size_t partitions);

/* The order that partitions are made with, scratch, and the result. */
typedef struct sl_partition_work {
    uint32_t *order;           /* names all n nodes; becomes sorted by partition */
    uint32_t *of;              /* n entries of scratch */
    uint32_t *scratch;         /* n entries */
    sl_partitions *partitions; /* has nothing before; the caller frees what it holds, also on failure */
    sl_partitions *groups;     /* likewise */
} sl_partition_work;

/* Makes partitions by k-means over a sample of the index's rows, and groups of the partitions where these are many.
 * Groups lie in the order in which `order` first meets them. So do the partitions of a group, and the nodes of a
 * partition, but that under IP nodes lie by falling length. Partitions without nodes are left out. The result depends
 * on the rows, their order and the index's seed; the number of threads changes nothing. Parameters: progress is asked
 * whether to go on; it may be NULL. Errors: SL_ENOMEM, SL_ECANCELED. */
sl_status sl_partitions_make(const sl_graph *graph, size_t threads, sl_progress *progress,
                             const sl_partition_work *work);
/* The largest codes that centroids may get. A build learns from the vectors whether they get these, or I8. */
sl_codes sl_partition_codes_at_most(const sl_graph *graph);
/* Tells the bytes of that, at most; without those of `work`. `graph` needs no arrays. */
sl_status sl_partitions_bytes(const sl_graph *graph, size_t threads, sl_bytes *bytes);
/* Counts the comparisons of n nodes with centroids. */
double sl_partitions_comparisons(size_t n);

#endif
