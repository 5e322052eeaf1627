/*
 * Searches for a batch of queries without the graph. Each query scans the partitions nearest to it. A partition's rows
 * are read once for all queries that scan it: a kernel multiplies tiles of rows with all of them.
 *
 * A walk reads fewer rows, but they are scattered, and it reads them for one query alone. A scan is cheaper once some
 * dozen queries share each partition.
 */
#ifndef SL_HNSW_SEARCH_SCAN_BATCH_H
#define SL_HNSW_SEARCH_SCAN_BATCH_H

#include "hnsw/search/query_batch.h"

/* Writes every query's results, as sl_index_search does. The queries have passed sl_vector_check. stats may be NULL.
 * Errors: SL_ENOMEM. */
sl_status sl_scan_batch(sl_query_batch *batch, sl_search_stats *stats);

#endif
