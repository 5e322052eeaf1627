/* The queries of a batch call, and where their results go. */
#ifndef SL_HNSW_SEARCH_QUERY_BATCH_H
#define SL_HNSW_SEARCH_QUERY_BATCH_H

#include "base/thread.h"
#include "hnsw/search/results.h"

typedef struct sl_query_batch sl_query_batch;

/* Answers query i with the calling thread's searcher, and adds to stats. */
typedef sl_status sl_answer_fn(const sl_query_batch *batch, size_t i, sl_searcher *searcher, sl_search_stats *stats);

struct sl_query_batch {
    const sl_graph *graph;
    const sl_numa *numa;     /* NULL: no NUMA policy */
    sl_searcher **searchers; /* one per thread; sl_query_batch_run fills it */
    size_t threads;
    const uint8_t *queries;
    sl_dtype dtype;
    size_t nq, stride, k;
    const sl_search_params *params;
    uint64_t *ids;
    float *scores;
    int nodes;    /* 1: write node numbers in place of the user's ids */
    size_t first; /* number of the first query, for messages */
    sl_progress progress;
    sl_answer_fn *answer; /* NULL: searches for k results and writes them to ids and scores */
    size_t max_ef;        /* max_ef of searchers, if `answer` is set */
    const void *ctx;      /* what `answer` reads besides */
};

static inline sl_query sl_query_batch_query(const sl_query_batch *batch, size_t i) {
    return (sl_query){batch->queries + i * batch->stride, batch->dtype};
}

/* Writes the searcher's results as row i. */
void sl_query_batch_write(const sl_query_batch *batch, const sl_searcher *searcher, size_t i);

/* Adds the counts of one thread. */
static inline void sl_search_stats_add(sl_search_stats *sum, const sl_search_stats *part) {
    sum->results += part->results;
    sum->evaluations += part->evaluations;
    sum->expansions += part->expansions;
    sum->exact += part->exact;
    sum->partitions += part->partitions;
    sum->walks += part->walks;
    sum->hops += part->hops;
    sum->cut += part->cut;
}

#endif
