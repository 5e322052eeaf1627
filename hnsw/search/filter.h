/* Filters as sets of nodes: what sl_filter_create makes. */
#ifndef SL_HNSW_SEARCH_FILTER_H
#define SL_HNSW_SEARCH_FILTER_H

#include "hnsw/search/allowed.h"

/* The bits, how many of them lie in each partition, and where they are few, a list of them. */
typedef struct sl_filter_set {
    uint64_t numbering; /* sl_graph.numbering that the nodes' numbers are of */
    uint64_t *bits;     /* a bit a node, n of them */
    size_t n, count;
    uint32_t *by_partition; /* set bits of each partition */
    size_t partitions;
    uint32_t *nodes; /* `count` of them; NULL where they are many */
} sl_filter_set;

struct sl_filter {
    sl_allocator allocator;
    sl_index *index;
    sl_filter_params source; /* its lists and bits are the filter's own */
    sl_filter_set set;
};

/* Tells whether a search of the graph may use the filter. Errors: SL_EINVAL (a filter of another index, or from before
 * the nodes were renumbered). */
sl_status sl_filter_check(const sl_filter *filter, const sl_index *index, const sl_graph *graph);

/* The nodes that the filter allows in a search of the graph. */
sl_allowed sl_filter_allowed(const sl_filter *filter, const sl_graph *graph);

#endif
