/* Checksums of nodes, in files that are written in place: such a file changes too often for a CRC per section. A
 * checksum covers the parts of a node that can't be made again from others: its codes, their rest, its refine row and
 * its id. Coarse rows can be made again, and sl_index_check tests links by their rules. */
#ifndef SL_HNSW_GRAPH_CHECKSUMS_H
#define SL_HNSW_GRAPH_CHECKSUMS_H

#include "hnsw/graph/index.h"

/* Returns whether a node's rows and id match its checksum. The index must have checksums. */
int sl_checksum_holds(const sl_graph *graph, uint32_t node);

typedef struct sl_checksums_found {
    size_t checked, bad;
    size_t node;    /* the first bad node */
    uint64_t first; /* its id */
} sl_checksums_found;

/* Checks all nodes. Finds no bad node in an index without checksums.
 * Parameters: `ids` gets the ids of the first `room` bad nodes, in node order. `progress` counts nodes, and may cancel
 * the check; NULL: none. */
sl_checksums_found sl_checksums_check(const sl_graph *graph, size_t threads, uint64_t *ids, size_t room,
                                      sl_progress *progress);

#endif
