/* The precision of a training's dense products, and the loss scale that fp16 needs (Micikevicius et al. 2017). */
#ifndef SL_RANKER_TRAIN_TRAIN_PRECISION_H
#define SL_RANKER_TRAIN_TRAIN_PRECISION_H

#include "base/status.h"

#include <shortlist_rank.h>

/* A training's precision, and its loss scale so far. A checkpoint holds all of it. The loss scale multiplies the
 * gradients of the deep part before they are rounded, so that small ones are not rounded to 0. */
typedef struct sl_precision_state {
    sl_train_precision precision; /* F32, BF16 or FP16 */
    int is_static;                /* the loss scale never changes */
    uint32_t good_steps;          /* without overflow since the scale last changed */
    double loss_scale;            /* 0 but for FP16 */
    uint64_t skipped;             /* steps whose gradients overflowed */
} sl_precision_state;

/* Checks the precision and the loss scale of the parameters. Errors: SL_EINVAL. */
sl_status sl_precision_check(const sl_train_params *params);

/* Gives the state that a training of these parameters begins with. Without a deep part there are no products, and the
 * precision is F32. */
sl_precision_state sl_precision_start(const sl_train_params *params, int has_deep);

/* Tells whether a training that was asked for `params` may go on from `found`. DEFAULT and AUTO take what they find. */
int sl_precision_fits(const sl_train_params *params, int has_deep, const sl_precision_state *found);

/* Tells whether a training can have this state after `steps` mini-batches. */
int sl_precision_is_sound(const sl_precision_state *state, uint64_t steps);

/* Counts a step whose gradients are finite, and doubles the scale where that is due. */
void sl_precision_good_step(sl_precision_state *state);
/* Counts a skipped step, and halves the scale. Errors: SL_EVALUE (there is nothing left to halve). */
sl_status sl_precision_overflow(sl_precision_state *state);

/* The type of the products' operands. */
sl_dtype sl_precision_type(sl_train_precision precision);

#endif
