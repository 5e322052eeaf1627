/* How often a training's rows use each row of the embedding tables. */
#ifndef SL_RANKER_USAGE_H
#define SL_RANKER_USAGE_H

#include "ranker/dataset.h"
#include "ranker/sparse_train.h"

typedef struct sl_usage {
    sl_allocator allocator;
    const sl_features *features;
    uint32_t **counts; /* a table each: by row of the table; NULL: not made yet */
} sl_usage;

/* Counts the training rows. To be freed on failure too. Errors: SL_ENOMEM. */
sl_status sl_usage_init(sl_usage *usage, const sl_dataset *dataset, const sl_allocator *allocator);
void sl_usage_free(sl_usage *usage);

/* Embeddings that no step has touched, as of a hash's empty buckets, become the mean of those that the rows use, by how
 * often they do: what is not known is taken for what is usual, and not for random numbers. */
void sl_usage_fill(const sl_usage *usage, const sl_sparse_trainer *trainer, float *const *embeddings);

#endif
