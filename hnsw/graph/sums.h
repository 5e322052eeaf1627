/* Checksums of single records: of a file that is written in place, where no section's CRC can hold. A record is what an
 * add says and nothing else can say again: a node's codes, what they leave over, its row of the refine tier, and its
 * id. Rows that are walked on are made from those; links are held to their rules by a check. */
#ifndef SL_HNSW_GRAPH_SUMS_H
#define SL_HNSW_GRAPH_SUMS_H

#include "hnsw/graph/index.h"

/* The CRC-32C of the node's rows that SL_ARRAY_SUMMED names, each with its padding, and of its id in 8 bytes. */
uint32_t sl_sum_of(const sl_graph *graph, uint32_t node);

/* The same as a row of SL_ARRAY_SUMS: see sl_derive_fn. */
sl_derive_fn sl_sum_row;

/* Whether a node's record is as its sum says. Of an index that has sums. */
int sl_sum_holds(const sl_graph *graph, uint32_t node);

typedef struct sl_sums_found {
    size_t checked, bad;
    size_t node;    /* of the first bad record */
    uint64_t first; /* and its id */
} sl_sums_found;

/* Holds the records of an index that has sums to them, none of another; ids of the first `room` bad ones, in the order
 * of nodes, go to `ids`. Steps progress, which may be NULL, by records, and ends early where that is cancelled. */
sl_sums_found sl_sums_check(const sl_graph *graph, size_t threads, uint64_t *ids, size_t room, sl_progress *progress);

#endif
