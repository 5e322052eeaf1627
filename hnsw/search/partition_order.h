/* Partitions in the order in which a query searches them: near centroids first. */
#ifndef SL_HNSW_SEARCH_PARTITION_ORDER_H
#define SL_HNSW_SEARCH_PARTITION_ORDER_H

#include "hnsw/graph/partition.h"
#include "hnsw/search/walk.h"

/* Partitions are sorted into this many classes by the scores of their centroids. A full sort would cost more than it
 * gains. */
enum { SL_PARTITION_CLASSES = 128 };

typedef struct sl_partition_order {
    const sl_partitions *partitions;
    const uint32_t *allowed; /* allowed nodes of each partition; NULL: all nodes */
    size_t n;                /* nodes of the graph */
    float *scores;           /* scores of the centroids, on the scale of the walk's scores of nodes */
    uint8_t *classes;
    uint32_t *order;                   /* partitions with allowed nodes, by class */
    size_t count;                      /* entries of `order` */
    float nearest, step;               /* class c begins at nearest + c * step; the unit is that of farness_of */
    size_t left[SL_PARTITION_CLASSES]; /* allowed nodes of each class that are left to search */
} sl_partition_order;

/* Returns the bytes of scratch. */
size_t sl_partition_order_scratch(const sl_graph *graph);

/* Scores all centroids and orders the partitions. The caller has set order->allowed, and the walk has its query. */
void sl_partition_order_make(sl_partition_order *order, sl_walk *walk, sl_query query, uint8_t *scratch);

/* Returns how many allowed nodes a partition has. */
static inline size_t sl_partition_allowed(const sl_partition_order *order, size_t partition) {
    if (order->allowed) return order->allowed[partition];
    sl_range nodes = sl_partition_nodes(order->partitions, partition, order->n);
    return nodes.end - nodes.first;
}

/* Returns how widely the scores of nodes spread around a centroid with this score. Under L2 the spread grows with the
 * query's distance d from the centroid, so d is returned. The score is walk->origin - d^2 / 2 there. Under other
 * metrics returns 1. */
float sl_partition_spread_unit(const sl_walk *walk, float score);

/* Returns the score of a centroid in the middle of a class. */
float sl_partition_class_score(const sl_partition_order *order, const sl_walk *walk, size_t class);

#endif
