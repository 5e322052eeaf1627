/* Filters as sets of nodes: the handle of sl_filter_create. */
#ifndef SL_HNSW_SEARCH_FILTER_H
#define SL_HNSW_SEARCH_FILTER_H

#include "hnsw/search/allowed.h"

/* A filter's nodes as bits, their number in each partition, and a list if they are few. */
typedef struct sl_filter_set {
    uint64_t numbering; /* sl_graph.numbering of the nodes' numbers */
    uint64_t as_of;     /* sl_graph.as_of of the graph that the set was made of */
    uint64_t *bits;     /* n bits, one per node */
    size_t n, count;
    uint32_t *by_partition; /* number of set bits in each partition */
    size_t partitions;
    uint32_t *nodes; /* the `count` nodes; NULL if they are many */
} sl_filter_set;

struct sl_filter {
    sl_allocator allocator;
    sl_index *index;
    sl_filter_params source; /* its lists and bits are the filter's own copies */
    sl_filter_set set;
};

/* Checks that a search of the graph may use the filter. Errors: SL_EINVAL (the filter belongs to another index handle,
 * or the nodes were renumbered after it was made). */
sl_status sl_filter_check(const sl_filter *filter, const sl_index *index, const sl_graph *graph);

/* Returns the nodes that the filter allows in a search of the graph. */
sl_allowed sl_filter_allowed(const sl_filter *filter, const sl_graph *graph);

#endif
