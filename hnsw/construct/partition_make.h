/* Makes partitions of an index's nodes, and groups of the partitions. */
#ifndef SL_HNSW_CONSTRUCT_PARTITION_MAKE_H
#define SL_HNSW_CONSTRUCT_PARTITION_MAKE_H

#include "hnsw/graph/index.h"

/* Number of partitions for n nodes. Partitions that stay empty are left out later. */
size_t sl_partition_count(size_t n);
/* Number of groups for this many partitions; 0 for few partitions. */
size_t sl_partition_groups(size_t partitions);

/* Input, scratch and output of sl_partitions_make. */
typedef struct sl_partition_work {
    uint32_t *order;           /* in: all n nodes, in any order; out: the same nodes by partition */
    uint32_t *of;              /* scratch: n entries */
    uint32_t *scratch;         /* scratch: n entries */
    sl_partitions *partitions; /* out: must be empty before; the caller frees them, also on failure */
    sl_partitions *groups;     /* out: the same */
} sl_partition_work;

/*
 * Makes partitions by k-means over a sample of the index's rows. If there are many partitions, also makes groups of
 * them.
 *
 * Groups come in the order in which work->order first names a node of each. The partitions of a group come in that
 * order too, and so do the nodes of a partition. Under IP the nodes of a partition come by falling length instead.
 * Partitions without nodes are left out. The result depends on the rows, their order and the index's seed, not on the
 * number of threads.
 *
 * Parameters: `progress` may be NULL; cancelled, it ends the call. Errors: SL_ENOMEM, SL_ECANCELED.
 */
sl_status sl_partitions_make(const sl_graph *graph, size_t threads, sl_progress *progress,
                             const sl_partition_work *work);
/* The largest codes that centroids can get: F32 if the vectors may need it, else I8. sl_partitions_make looks at the
 * vectors and may still choose I8. */
sl_codes sl_partition_codes_at_most(const sl_graph *graph);
/* Bytes of sl_partitions_make, without those of `work`. `graph` needs no arrays. */
sl_status sl_partitions_bytes(const sl_graph *graph, size_t threads, sl_bytes *bytes);
/* Number of comparisons of n nodes with centroids. */
double sl_partitions_comparisons(size_t n);

#endif
