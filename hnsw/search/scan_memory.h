/* The memory that one thread scans with: the scratch of its tiles, and room for its queries, in one block. */
#ifndef SL_HNSW_SEARCH_SCAN_MEMORY_H
#define SL_HNSW_SEARCH_SCAN_MEMORY_H

#include "hnsw/search/scan_tiles.h"
#include "hnsw/search/searcher_state.h"

/* Queries that choose partitions together, among all of them. */
#define SL_SCAN_CHOOSE_CHUNK 64u

/* The sizes that a thread's memory is made for. */
typedef struct sl_scan_shape {
    const sl_graph *graph;
    size_t probes;      /* partitions a query looks at */
    size_t groups;      /* groups in which it looks for them; 0: it looks among all partitions */
    size_t keep;        /* nodes a query keeps */
    size_t max_queries; /* queries that go together */
} sl_scan_shape;

typedef struct sl_scan_memory {
    sl_tile_scan tiles;
    sl_query_set nodes; /* `max_queries` queries */
    sl_query_set
        partitions; /* queries over the centroids: `max_queries` where there are groups, else SL_SCAN_CHOOSE_CHUNK */
    sl_query_set groups;    /* SL_SCAN_CHOOSE_CHUNK queries, by the codes of `partitions` */
    sl_probe_choice chosen; /* partitions that queries chose */
    sl_probe_choice chosen_groups;
    float *floats; /* dim: a query as floats */
    void *buffer;  /* a query's code over centroids */
} sl_scan_memory;

/* How many of a thread's queries go together: as many as there is reasonable room for. Its shape's `max_queries` is
 * not read. */
size_t sl_scan_chunk_size(const sl_scan_shape *shape, size_t queries);

/* Lays everything out in the searcher's scratch, which stays with the searcher for its next batch: clearing new memory
 * takes longer than a short scan. `walked` is the codec of the nodes' rows. Errors: SL_ENOMEM. */
sl_status sl_scan_memory_init(sl_scan_memory *memory, const sl_scan_shape *shape, const sl_codec *walked,
                              sl_searcher *searcher);

#endif
