#include "hnsw/search/query_batch.h"

void sl_query_batch_write(const sl_query_batch *batch, const sl_searcher *searcher, size_t i) {
    const size_t k = batch->k;
    sl_results_write(searcher, k, batch->nodes, batch->ids + i * k, batch->scores ? batch->scores + i * k : NULL);
}
