/* Pruning by magnitude: while a training goes on, ever more of the dense layers' weights are set to 0, the smallest
 * first. Zeros stay. Biases are left alone.
 *
 * After step t of the n steps that cut, the share of zeros is share * (1 - (1 - t / n)^3) (Zhu and Gupta 2017, arXiv
 * 1710.01878). The layers stay dense: a product with zeros is not faster. */
#ifndef SL_RANKER_TRAIN_MAGNITUDE_H
#define SL_RANKER_TRAIN_MAGNITUDE_H

#include "base/memory.h"
#include "ranker/net/net.h"

/* Times at which weights are cut, evenly spread over the n steps. */
#define SL_MAGNITUDE_CUTS 100u

typedef struct sl_magnitude {
    sl_allocator allocator;
    sl_net_shape shape;
    double share;            /* of the weights, at the end */
    uint64_t steps;          /* n */
    int per_layer;           /* whether each layer has the share of its own weights */
    unsigned char *was_zero; /* for each float of the layers' block: whether it was 0 before the step */
    uint32_t *counts;        /* for choosing: how many weights have a magnitude with these bits */
} sl_magnitude;

/* `steps` is at least 1. */
sl_status sl_magnitude_create(const sl_net_shape *shape, double share, uint64_t steps, int per_layer,
                              const sl_allocator *allocator, sl_magnitude **out);
void sl_magnitude_free(sl_magnitude *magnitude);

/* Notes the zeros before an optimiser's step. Nothing else need be kept: a checkpoint's weights say what was cut. */
void sl_magnitude_before(sl_magnitude *magnitude, const float *dense);
/* Puts those zeros back after step number `step` (from 0), and cuts more where that is due. */
void sl_magnitude_after(sl_magnitude *magnitude, float *dense, uint64_t step);
/* Cuts to the whole share at once. */
void sl_magnitude_cut(sl_magnitude *magnitude, float *dense, double share);
/* Tells whether the whole share has been cut when `steps` steps are over. */
static inline int sl_magnitude_done(const sl_magnitude *magnitude, uint64_t steps) {
    return steps >= magnitude->steps;
}

#endif
