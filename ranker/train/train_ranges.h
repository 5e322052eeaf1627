/* Ranges of a quantisation-aware training: of each layer's inputs, and the scales of its weights. They are observed
 * (Jacob et al. 2018, arXiv 1712.05877) or learned (Esser et al. 2020, arXiv 1902.08153). Learning steps the logarithms
 * of both ends of a range (Jain et al. 2020, arXiv 1903.08066). At the end the ranges fold the layers into INT8. */
#ifndef SL_RANKER_TRAIN_TRAIN_RANGES_H
#define SL_RANKER_TRAIN_TRAIN_RANGES_H

#include "ranker/model/coded.h"
#include "ranker/net/calibrate.h"
#include "ranker/net/net_fake.h"

/* Each layer in INT8 has in `numbers`: the low and the high end of its inputs, and a scale for each output's weights.
 */
typedef struct sl_ranges {
    sl_allocator allocator;
    const sl_loops *loops;
    sl_net_shape shape;
    sl_train_ranges kind;
    size_t threads;
    uint64_t first_step;      /* from which on layers are in INT8 */
    size_t at[SL_MAX_LAYERS]; /* a layer's place in `numbers` */
    size_t size, states;      /* floats of `numbers`; of the optimiser's states for each, if they are learned */
    sl_fake_layer layers[SL_MAX_LAYERS];

    /* A checkpoint holds the flag and three arrays, one behind the other. */
    int started;    /* whether the layers are in INT8 yet */
    float *numbers; /* after the last step */
    float *best;    /* after the best epoch */
    float *state;   /* states * size floats */
    float *room;    /* for a step: 2 * size floats */
} sl_ranges;

/* Checks the layers and ranges of the parameters, and what they do not go with. Errors: SL_EINVAL. */
sl_status sl_ranges_check(const sl_train_params *params);

/* Makes the ranges of a training of these parameters. *out is NULL where its layers stay F32.
 * Parameters: states is that of the layers' optimiser, 1 or 2. Errors: SL_EINVAL (no deep part; no layer in INT8),
 * SL_ENOTFOUND (a layer's name), SL_ENOMEM. */
sl_status sl_ranges_create(const sl_train_params *params, const sl_net_shape *shape, size_t states,
                           const sl_allocator *allocator, sl_ranges **out);
void sl_ranges_free(sl_ranges *ranges);

/* Sets a layer's ranges from its inputs and from the layers' weights. Errors: SL_EINVAL (all inputs are 0), SL_EVALUE
 * (inputs that are not finite), SL_ENOMEM. */
sl_status sl_ranges_calibrate(sl_ranges *ranges, size_t layer, const sl_observer *inputs, const float *dense);
/* Writes the numbers into `layers`, for the next forward with these weights. */
void sl_ranges_take_up(sl_ranges *ranges, const float *dense);
/* Moves the ranges on by what the last step saw. */
void sl_ranges_step(sl_ranges *ranges, const sl_net_fake *seen, const sl_step *step);
/* Keeps the numbers as the best. */
void sl_ranges_keep(sl_ranges *ranges);

/* Folds the layers into codes, by the best numbers where is_best is set, else by the present ones. Errors: SL_EVALUE
 * (weights too large for INT8 sums), SL_ENOMEM. */
sl_status sl_ranges_fold(sl_ranges *ranges, int is_best, const float *dense, sl_coded *out);

/* Tells whether numbers, of ranges that have started, are such as a training has. */
int sl_ranges_are_sound(const sl_ranges *ranges, const float *numbers);

#endif
