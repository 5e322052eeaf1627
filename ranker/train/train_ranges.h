/* Ranges of a quantisation-aware training: each layer's input range, and the scales of its weights. Training observes
 * them (Jacob et al. 2018, arXiv 1712.05877) or learns them (Esser et al. 2020, arXiv 1902.08153). Learning steps the
 * logarithms of a range's two ends (Jain et al. 2020, arXiv 1903.08066). At the end, the ranges fold the layers into
 * INT8. */
#ifndef SL_RANKER_TRAIN_TRAIN_RANGES_H
#define SL_RANKER_TRAIN_TRAIN_RANGES_H

#include "ranker/model/coded_layers.h"
#include "ranker/net/calibrate.h"
#include "ranker/net/net_fake.h"

/* `numbers` holds for each layer in INT8: the low and the high end of its inputs, and one scale per output for its
 * weights. */
typedef struct sl_ranges {
    sl_allocator allocator;
    const sl_loops *loops;
    sl_net_shape shape;
    sl_train_ranges kind;
    size_t threads;
    uint64_t first_step;      /* first step in INT8 */
    size_t at[SL_MAX_LAYERS]; /* offset of a layer in `numbers` */
    size_t size, states;      /* floats in `numbers`; floats of optimiser state for each, 0 unless learned */
    sl_fake_layer layers[SL_MAX_LAYERS];

    /* A checkpoint holds the flag and the three arrays, one after the other. */
    int started;    /* the layers are in INT8 already */
    float *numbers; /* after the last step */
    float *best;    /* after the best epoch */
    float *state;   /* states * size floats */
    float *room;    /* scratch of a step: 2 * size floats */
} sl_ranges;

/* Checks layers, ranges, keep and precision of the parameters together. Errors: SL_EINVAL. */
sl_status sl_ranges_check(const sl_train_params *params);

/* Makes the ranges of a training with these parameters. *out is NULL if its layers stay F32.
 * Parameters: states is the optimiser's states per weight, 1 or 2.
 * Errors: SL_EINVAL (no deep part; no layer in INT8), SL_ENOTFOUND (a layer's name), SL_ENOMEM. */
sl_status sl_ranges_create(const sl_train_params *params, const sl_net_shape *shape, size_t states,
                           const sl_allocator *allocator, sl_ranges **out);
void sl_ranges_free(sl_ranges *ranges);

/* Sets a layer's ranges from its observed inputs and the layers' weights. Errors: SL_EINVAL (all inputs are 0),
 * SL_EVALUE (inputs that are not finite), SL_ENOMEM. */
sl_status sl_ranges_calibrate(sl_ranges *ranges, size_t layer, const sl_observer *inputs, const float *dense);
/* Copies `numbers` into `layers` for the next forward with these weights. */
void sl_ranges_set_layers(sl_ranges *ranges, const float *dense);
/* Updates the ranges after a step that saw these values. */
void sl_ranges_step(sl_ranges *ranges, const sl_net_fake *seen, const sl_step *step);
/* Keeps the present numbers as the best. */
void sl_ranges_keep_best(sl_ranges *ranges);

/* Folds the layers into codes, with the best numbers if is_best is set, else with the present ones. Errors: SL_EVALUE
 * (weights too large for INT8 sums), SL_ENOMEM. */
sl_status sl_ranges_fold(sl_ranges *ranges, int is_best, const float *dense, sl_coded_layers *out);

/* Returns whether a training can have these numbers after its ranges started. */
int sl_ranges_are_sound(const sl_ranges *ranges, const float *numbers);

#endif
