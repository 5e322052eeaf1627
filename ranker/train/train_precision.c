#include "ranker/train/train_precision.h"

#include "ranker/net/net.h"

#include <math.h>

#define FIRST_SCALE     65536.0    /* 2^16 */
#define LARGEST_SCALE   16777216.0 /* 2^24 */
#define LEAST_SCALE     1.0
#define STEPS_TO_DOUBLE 2000u

const char *sl_train_precision_name(sl_train_precision precision) {
    static const char *const names[] = {[SL_TRAIN_DEFAULT] = "default",
                                        [SL_TRAIN_F32] = "f32",
                                        [SL_TRAIN_BF16] = "bf16",
                                        [SL_TRAIN_FP16] = "fp16",
                                        [SL_TRAIN_AUTO] = "auto"};
    size_t value = (size_t)precision;
    return value < sizeof names / sizeof *names ? names[value] : "?";
}

sl_status sl_precision_check(const sl_train_params *params) {
    double scale = params->loss_scale;
    if ((unsigned)params->precision > SL_TRAIN_AUTO)
        return sl_fail(SL_EINVAL, "precision is %d, which is none of sl_train_precision", (int)params->precision);
    if (scale == 0) return SL_OK;
    if (params->precision != SL_TRAIN_FP16)
        return sl_fail(SL_EINVAL, "loss_scale is of precision fp16 alone; leave it at 0 for %s",
                       sl_train_precision_name(params->precision));
    if (!(scale >= LEAST_SCALE && scale <= LARGEST_SCALE))
        return sl_fail(SL_EINVAL, "loss_scale is %g; give a number from 1 to 2^24, or 0 for a scale that adapts",
                       scale);
    return SL_OK;
}

static sl_train_precision precision_for(sl_train_precision asked, int has_deep) {
    if (!has_deep || asked == SL_TRAIN_DEFAULT) return SL_TRAIN_F32;
    if (asked == SL_TRAIN_AUTO) return sl_net_multiplies(SL_BF16) ? SL_TRAIN_BF16 : SL_TRAIN_F32;
    return asked;
}

sl_precision_state sl_precision_start(const sl_train_params *params, int has_deep) {
    sl_precision_state state = {.precision = precision_for(params->precision, has_deep)};
    if (state.precision != SL_TRAIN_FP16) return state;
    state.is_static = params->loss_scale > 0;
    state.loss_scale = state.is_static ? params->loss_scale : FIRST_SCALE;
    return state;
}

int sl_precision_fits(const sl_train_params *params, int has_deep, const sl_precision_state *found) {
    if (params->precision == SL_TRAIN_DEFAULT || params->precision == SL_TRAIN_AUTO) return 1;
    sl_precision_state asked = sl_precision_start(params, has_deep);
    if (asked.precision != found->precision || asked.is_static != found->is_static) return 0;
    return !asked.is_static || asked.loss_scale == found->loss_scale;
}

int sl_precision_is_sound(const sl_precision_state *state, uint64_t steps) {
    if (state->precision == SL_TRAIN_F32 || state->precision == SL_TRAIN_BF16)
        return !state->is_static && !state->good_steps && state->loss_scale == 0 && !state->skipped;
    return state->precision == SL_TRAIN_FP16 && (unsigned)state->is_static <= 1 &&
           state->good_steps < STEPS_TO_DOUBLE && state->loss_scale >= LEAST_SCALE &&
           state->loss_scale <= LARGEST_SCALE && state->skipped <= steps;
}

void sl_precision_good_step(sl_precision_state *state) {
    if (state->precision != SL_TRAIN_FP16 || state->is_static || ++state->good_steps < STEPS_TO_DOUBLE) return;
    state->good_steps = 0;
    state->loss_scale = fmin(2 * state->loss_scale, LARGEST_SCALE);
}

sl_status sl_precision_overflow(sl_precision_state *state) {
    state->skipped++;
    if (state->is_static) return SL_OK;
    if (state->loss_scale <= LEAST_SCALE)
        return sl_fail(SL_EVALUE,
                       "the gradients overflow fp16 even at a loss scale of 1: train in bf16 or f32, or lower "
                       "deep.rate");
    state->good_steps = 0;
    state->loss_scale = fmax(state->loss_scale / 2, LEAST_SCALE);
    return SL_OK;
}

sl_dtype sl_precision_type(sl_train_precision precision) {
    return precision == SL_TRAIN_BF16 ? SL_BF16 : precision == SL_TRAIN_FP16 ? SL_F16 : SL_F32;
}
