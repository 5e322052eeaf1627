/* Training forgets some values, so that it also trains the weights for missing and unseen values. */
#ifndef SL_RANKER_TRAIN_FORGET_H
#define SL_RANKER_TRAIN_FORGET_H

#include "ranker/features/dataset.h"

/* The encoding of a row without values, and the probability of forgetting. */
typedef struct sl_forgetter {
    sl_allocator allocator;
    const sl_features *features;
    uint32_t share;         /* probability for a value, and for a whole side, in 65536ths */
    sl_rows_buffer missing; /* one row */
    size_t *bags;           /* feature number of each bag */
} sl_forgetter;

/* Makes a forgetter. Probability 0 forgets nothing. The caller frees it on failure too. Errors: SL_ENOMEM. */
sl_status sl_forgetter_init(sl_forgetter *forgetter, const sl_features *features, double probability,
                            const sl_allocator *allocator);
void sl_forgetter_free(sl_forgetter *forgetter);

/* A step of a training, for draws. */
typedef struct sl_forget_step {
    uint64_t seed, step;
    size_t first_row; /* place of row 0 in the mini-batch of all ranks */
    size_t threads;
} sl_forget_step;

/* Forgets values of the mini-batch. Only seed, step and a row's place in the mini-batch decide which. */
void sl_forget_values(const sl_forgetter *forgetter, sl_minibatch *minibatch, const sl_forget_step *at);

#endif
