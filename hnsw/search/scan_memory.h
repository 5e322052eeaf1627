/* One thread's memory for a batch scan, in one block: the scratch of its tile scan, and room for its queries. */
#ifndef SL_HNSW_SEARCH_SCAN_MEMORY_H
#define SL_HNSW_SEARCH_SCAN_MEMORY_H

#include "hnsw/search/scan_tiles.h"
#include "hnsw/search/searcher_state.h"

/* Queries that choose among all partitions together. */
#define SL_SCAN_CHOOSE_CHUNK 64u

/* The sizes of a thread's memory. */
typedef struct sl_scan_shape {
    const sl_graph *graph;
    size_t probes;      /* partitions a query looks at */
    size_t groups;      /* groups whose partitions it chooses from; 0: among all partitions */
    size_t keep;        /* hits a query keeps */
    size_t max_queries; /* queries of a chunk */
} sl_scan_shape;

typedef struct sl_scan_memory {
    sl_tile_scan tiles;
    sl_query_set nodes; /* `max_queries` queries */
    sl_query_set
        partitions;      /* queries over the centroids: `max_queries` if there are groups, else SL_SCAN_CHOOSE_CHUNK */
    sl_query_set groups; /* SL_SCAN_CHOOSE_CHUNK queries, by the codes of `partitions` */
    sl_probe_choice chosen; /* the partitions that queries chose */
    sl_probe_choice chosen_groups;
    float *floats; /* dim: a query as floats */
    void *buffer;  /* a query's code over centroids */
} sl_scan_memory;

/* Returns how many of a thread's queries form a chunk, within reasonable memory. Ignores shape->max_queries. */
size_t sl_scan_chunk_size(const sl_scan_shape *shape, size_t queries);

/* Lays the memory out in the searcher's scratch, which stays for the next batch: to clear new memory takes longer than
 * a short scan.
 * Parameters: codec: of the nodes' rows.
 * Errors: SL_ENOMEM. */
sl_status sl_scan_memory_init(sl_scan_memory *memory, const sl_scan_shape *shape, const sl_codec *walked,
                              sl_searcher *searcher);

#endif
