/*
 * Searches for a batch of queries without the graph. Each query looks at the partitions nearest to it. A partition's
 * rows are read once for all of its queries: a kernel multiplies tiles of rows with all queries.
 *
 * A walk reads fewer rows, but each from somewhere else, and for one query alone. From some dozen queries a partition
 * on, the product is cheaper.
 */
#ifndef SL_HNSW_SEARCH_SCAN_BATCH_H
#define SL_HNSW_SEARCH_SCAN_BATCH_H

#include "hnsw/search/query_batch.h"

/* Writes every query's results, as sl_index_search does. The queries have passed sl_vector_check. Errors: SL_ENOMEM. */
sl_status sl_scan_batch(sl_query_batch *batch, sl_search_stats *stats);

#endif
