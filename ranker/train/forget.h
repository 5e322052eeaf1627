/* Training forgets values, so that the weights for missing and unseen values are trained. */
#ifndef SL_RANKER_TRAIN_FORGET_H
#define SL_RANKER_TRAIN_FORGET_H

#include "ranker/features/dataset.h"

/* The encoding of a row without values, and how often a value is forgotten. */
typedef struct sl_forgetter {
    sl_allocator allocator;
    const sl_features *features;
    uint32_t share;         /* chance of a value, and of a whole side, in 65536ths */
    sl_rows_buffer missing; /* one row */
    size_t *bags;           /* for each bag, the number of its feature */
} sl_forgetter;

/* Makes a forgetter. Probability 0 forgets nothing. Free it on failure too. Errors: SL_ENOMEM. */
sl_status sl_forgetter_init(sl_forgetter *forgetter, const sl_features *features, double probability,
                            const sl_allocator *allocator);
void sl_forgetter_free(sl_forgetter *forgetter);

/* Forgets values of the mini-batch. Only seed, step and a row's place in the mini-batch decide which. */
void sl_forget(const sl_forgetter *forgetter, sl_minibatch *minibatch, uint64_t seed, uint64_t step, size_t threads);

#endif
