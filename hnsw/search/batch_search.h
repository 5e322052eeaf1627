/* Batch calls: checks their queries, and answers them on several threads. */
#ifndef SL_HNSW_SEARCH_BATCH_SEARCH_H
#define SL_HNSW_SEARCH_BATCH_SEARCH_H

#include "hnsw/search/query_batch.h"

/* Checks the queries and starts the progress. Stride 0 becomes the stride of dense rows.
 * Parameters: batch: graph, queries, dtype, nq and stride are set. threads: the number that the caller gave.
 * Errors: SL_EINVAL. */
sl_status sl_query_batch_begin(const sl_index *index, sl_query_batch *batch, size_t threads, sl_progress_fn progress,
                               void *progress_ctx);

/* Answers all queries. The caller has set all fields of batch but `searchers`, and started the progress. stats may be
 * NULL. Error messages name the query. */
sl_status sl_query_batch_run(const sl_index *index, sl_query_batch *batch, sl_search_stats *stats);

#endif
