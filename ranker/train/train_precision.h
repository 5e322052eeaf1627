/* The precision of a training's dense products, and the loss scale of fp16 (Micikevicius et al. 2017). */
#ifndef SL_RANKER_TRAIN_TRAIN_PRECISION_H
#define SL_RANKER_TRAIN_TRAIN_PRECISION_H

#include "base/status.h"

#include <shortlist_rank.h>

/* A training's precision and its current loss scale. A checkpoint holds all of it. Training multiplies the deep part's
 * gradients by the loss scale before it rounds them, so small ones do not round to 0. */
typedef struct sl_precision_state {
    sl_train_precision precision; /* F32, BF16 or FP16 */
    int is_static;                /* the loss scale never changes */
    uint32_t good_steps;          /* steps without overflow since the scale last changed */
    double loss_scale;            /* 0 unless FP16 */
    uint64_t skipped;             /* steps whose gradients overflowed */
} sl_precision_state;

/* Checks the precision and the loss scale of the parameters. Errors: SL_EINVAL. */
sl_status sl_precision_check(const sl_train_params *params);

/* The initial state of a training. Without a deep part there are no products, and the precision is F32. */
sl_precision_state sl_precision_start(const sl_train_params *params, int has_deep);

/* Returns whether a training with `params` may go on from state `found`. DEFAULT and AUTO accept any state. */
int sl_precision_fits(const sl_train_params *params, int has_deep, const sl_precision_state *found);

/* Returns whether a training can be in this state after `steps` mini-batches. */
int sl_precision_is_sound(const sl_precision_state *state, uint64_t steps);

/* Counts a step with finite gradients. Doubles the scale after enough of them. */
void sl_precision_good_step(sl_precision_state *state);
/* Counts a skipped step and halves the scale. Errors: SL_EVALUE (the scale is 1 already). */
sl_status sl_precision_overflow(sl_precision_state *state);

/* Type of the products' operands. */
sl_dtype sl_precision_type(sl_train_precision precision);

#endif
