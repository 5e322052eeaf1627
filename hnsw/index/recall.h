/* Recall of searches for stored vectors, by a sample. */
#ifndef SL_HNSW_INDEX_RECALL_H
#define SL_HNSW_INDEX_RECALL_H

#include "hnsw/search/topk.h"
#include "hnsw/search/walk.h"

typedef struct sl_recall_sampler {
    sl_walk walk;
    sl_top top;
    size_t taken, lost;  /* vectors; those of whose k nearest a search finds less than half */
    double sum, squares; /* of recalls */
} sl_recall_sampler;

/* Prepares for the k nearest of vectors, by walks that keep ef candidates. Errors: SL_ENOMEM. */
sl_status sl_recall_sampler_init(sl_recall_sampler *sampler, const sl_graph *graph, size_t k, size_t ef);
void sl_recall_sampler_free(sl_recall_sampler *sampler);
/* Draws vector number i, searches for its k nearest, and compares with all vectors. The graph may be another version
 * each time. Equal numbers draw equal vectors. Errors: SL_ENOMEM. */
sl_status sl_recall_sampler_take(sl_recall_sampler *sampler, const sl_graph *graph, uint64_t i);

#endif
