/* Magnitude pruning: during a training, more and more of the dense layers' weights become 0, the smallest first. Zeros
 * stay 0. Biases do not change.
 *
 * After step t of n cutting steps, the share of zeros is share * (1 - (1 - t / n)^3) (Zhu and Gupta 2017, arXiv
 * 1710.01878). The layers stay dense: products with zeros are not faster. */
#ifndef SL_RANKER_TRAIN_MAGNITUDE_PRUNING_H
#define SL_RANKER_TRAIN_MAGNITUDE_PRUNING_H

#include "base/memory.h"
#include "ranker/net/net.h"

/* Number of cuts, evenly spread over the n steps. */
#define SL_MAGNITUDE_CUTS 100u

typedef struct sl_magnitude {
    sl_allocator allocator;
    sl_net_shape shape;
    double share;            /* share of zeros after the last cut */
    uint64_t steps;          /* n: steps over which the cuts are spread */
    int per_layer;           /* each layer loses the share of its own weights */
    unsigned char *was_zero; /* one flag per float of the layers' block: it was 0 before the step */
    uint32_t *counts;        /* histogram of magnitudes by 16 of their bits */
} sl_magnitude;

/* `steps` is at least 1. */
sl_status sl_magnitude_create(const sl_net_shape *shape, double share, uint64_t steps, int per_layer,
                              const sl_allocator *allocator, sl_magnitude **out);
void sl_magnitude_free(sl_magnitude *magnitude);

/* Notes the zeros before an optimiser's step. A checkpoint needs nothing more: its weights show what was cut. */
void sl_magnitude_note_zeros(sl_magnitude *magnitude, const float *dense);
/* Restores the noted zeros after step number `step` (from 0), and cuts more if a cut is due. */
void sl_magnitude_restore_and_cut(sl_magnitude *magnitude, float *dense, uint64_t step);
/* Cuts down to this share at once. */
void sl_magnitude_cut(sl_magnitude *magnitude, float *dense, double share);
/* Returns whether all cuts are done after `steps` steps. */
static inline int sl_magnitude_is_done(const sl_magnitude *magnitude, uint64_t steps) {
    return steps >= magnitude->steps;
}

#endif
