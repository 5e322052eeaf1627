/* Checksums of single nodes, in a file that is written in place. Such a file changes too often for a CRC of each
 * section. A checksum covers what an add wrote and nothing can make again: a node's codes, their rest, the refine row
 * and the id. Coarse rows can be made from these. sl_index_check checks links by their rules. */
#ifndef SL_HNSW_GRAPH_CHECKSUMS_H
#define SL_HNSW_GRAPH_CHECKSUMS_H

#include "hnsw/graph/index.h"

/* Tells whether a node's rows and id agree with the stored checksum. The index has checksums. */
int sl_checksum_holds(const sl_graph *graph, uint32_t node);

typedef struct sl_checksums_found {
    size_t checked, bad;
    size_t node;    /* the first bad node */
    uint64_t first; /* the first bad node's id */
} sl_checksums_found;

/* Checks all nodes against their checksums. An index without checksums passes.
 * Parameters: `ids` gets the ids of the first `room` bad nodes, in the order of nodes; `progress` may be NULL, is
 * stepped by nodes, and may cancel the check. */
sl_checksums_found sl_checksums_check(const sl_graph *graph, size_t threads, uint64_t *ids, size_t room,
                                      sl_progress *progress);

#endif
