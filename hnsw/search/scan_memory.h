/* One thread's memory for a batch scan, in one block: the scratch of its tile scan, and room for its queries. */
#ifndef SL_HNSW_SEARCH_SCAN_MEMORY_H
#define SL_HNSW_SEARCH_SCAN_MEMORY_H

#include "hnsw/search/scan_tiles.h"
#include "hnsw/search/searcher_state.h"

/* Queries that score all centroids together. */
#define SL_SCAN_CHOOSE_CHUNK 64u

/* The sizes of a thread's memory. */
typedef struct sl_scan_shape {
    const sl_graph *graph;
    size_t probes;      /* partitions that each query scans */
    size_t groups;      /* groups in whose partitions each query chooses; 0: it chooses among all partitions */
    size_t keep;        /* hits that each query keeps */
    size_t max_queries; /* most queries of a chunk */
} sl_scan_shape;

typedef struct sl_scan_memory {
    sl_tile_scan tiles;
    sl_query_set nodes;      /* queries over the nodes' rows: max_queries */
    sl_query_set partitions; /* queries over centroids: max_queries if there are groups, else SL_SCAN_CHOOSE_CHUNK */
    sl_query_set groups;     /* queries over groups' centroids: SL_SCAN_CHOOSE_CHUNK, by the codes of `partitions` */
    sl_probe_choice chosen;  /* band prefixes that each query chose */
    sl_probe_choice chosen_groups;
    float *floats; /* dim floats: one query */
    void *buffer;  /* the code of one query over centroids */
} sl_scan_memory;

/* Returns how many of a thread's queries form a chunk, so that the memory stays within bounds. Doesn't read
 * shape->max_queries. */
size_t sl_scan_chunk_size(const sl_scan_shape *shape, size_t queries);

/* Lays the memory out in the searcher's scratch, which is kept for the next batch. Clearing new memory would take
 * longer than a short scan.
 * Parameters: codec: codec of the nodes' rows.
 * Errors: SL_ENOMEM. */
sl_status sl_scan_memory_init(sl_scan_memory *memory, const sl_scan_shape *shape, const sl_codec *codec,
                              sl_searcher *searcher);

#endif
