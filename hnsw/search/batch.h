/* A batch call under way: its parameters, and the searchers of its threads. */
#ifndef SL_HNSW_SEARCH_BATCH_H
#define SL_HNSW_SEARCH_BATCH_H

#include "base/thread.h"
#include "hnsw/search/searcher.h"

typedef struct sl_query_batch {
    const sl_graph *graph;
    const sl_numa *numa;     /* NULL: no policy */
    sl_searcher **searchers; /* one a thread */
    size_t threads;
    const uint8_t *queries;
    sl_dtype dtype;
    size_t nq, stride, k;
    const sl_search_params *params;
    uint64_t *ids;
    float *scores;
    int nodes; /* ids get numbers of nodes, not the user's ids */
    sl_progress progress;
} sl_query_batch;

static inline const void *sl_query_batch_query(const sl_query_batch *batch, size_t i) {
    return batch->queries + i * batch->stride;
}

/* batch.c: writes the searcher's results as row i of the batch's results. */
void sl_query_batch_write(const sl_query_batch *batch, const sl_searcher *searcher, size_t i);

/* Adds what one thread counted. */
static inline void sl_search_stats_add(sl_search_stats *sum, const sl_search_stats *part) {
    sum->results += part->results;
    sum->evaluations += part->evaluations;
    sum->expansions += part->expansions;
    sum->exact += part->exact;
    sum->partitions += part->partitions;
    sum->walks += part->walks;
}

#endif
