/* How often the training rows use each row of the embedding tables. */
#ifndef SL_RANKER_TRAIN_EMBEDDING_USAGE_H
#define SL_RANKER_TRAIN_EMBEDDING_USAGE_H

#include "ranker/features/dataset.h"
#include "ranker/train/sparse_train.h"

typedef struct sl_embedding_usage {
    sl_allocator allocator;
    const sl_features *features;
    uint32_t **counts; /* for each table: uses per row; NULL: not made yet */
} sl_embedding_usage;

/* Counts the uses by the training rows of all ranks. The caller frees it on failure too. Errors: SL_ENOMEM. */
sl_status sl_embedding_usage_init(sl_embedding_usage *usage, const sl_dataset *dataset, const sl_ranks *ranks,
                                  const sl_allocator *allocator);
void sl_embedding_usage_free(sl_embedding_usage *usage);

/* Sets embeddings that no row uses and no step changed, such as a hash's empty buckets. They become the mean of the
 * used embeddings, weighted by their uses. So an unknown value scores like a usual one, not like random numbers. Of a
 * sharded table, the call sets this rank's rows. */
void sl_embedding_usage_fill_unused(const sl_embedding_usage *usage, const sl_sparse_trainer *trainer,
                                    float *const *embeddings);

#endif
