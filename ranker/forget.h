/* Forgetting values while training, so that the rows of weights for what is missing or unseen are trained. */
#ifndef SL_RANKER_FORGET_H
#define SL_RANKER_FORGET_H

#include "ranker/dataset.h"

/* What a row without values is encoded to, and how often a value is forgotten. */
typedef struct sl_forgetter {
    sl_allocator allocator;
    const sl_features *features;
    uint32_t share;         /* of 65536: the chance of a value, and of a whole side */
    sl_rows_buffer missing; /* one row */
    size_t *bags;           /* number of the feature of each bag */
} sl_forgetter;

/* probability 0 forgets nothing. To be freed on failure too. Errors: SL_ENOMEM. */
sl_status sl_forgetter_init(sl_forgetter *forgetter, const sl_features *features, double probability,
                            const sl_allocator *allocator);
void sl_forgetter_free(sl_forgetter *forgetter);

/* Forgets values of the gathered batch. The choice depends on seed, step and a row's place in the batch alone. */
void sl_forget(const sl_forgetter *forgetter, sl_minibatch *minibatch, uint64_t seed, uint64_t step, size_t threads);

#endif
