/* How much each hidden unit counts. Units are numbered layer by layer: all of the first hidden layer, then the next. */
#ifndef SL_RANKER_PRUNE_IMPORTANCE_H
#define SL_RANKER_PRUNE_IMPORTANCE_H

#include "ranker/train/train_step.h"

/* Hidden units of a net, and those before a layer's outputs. */
size_t sl_unit_count(const sl_net_shape *shape);

/* Computes the first-order importance (Molchanov et al. 2019, arXiv 1906.10771, with a gate behind the activation). It
 * is the loss's change without the unit, squared, and its mean over mini-batches. The change is the sum of the unit's
 * weights out, each times its gradient.
 * Parameters: rows is the number of training rows to look at; 0 is all. The spec's seed draws them. out has an entry a
 * unit.
 * Errors: SL_EVALUE (a loss that is not finite). */
sl_status sl_unit_taylor(sl_trainer *trainer, size_t rows, double *out);

/* Computes the norm of each unit's weights in, times that of its weights out (after Li et al. 2017, arXiv 1608.08710).
 * The product stays the same where a ReLU unit's input is scaled up and its output down. */
void sl_unit_norms(const sl_net_shape *shape, const float *dense, double *out);

#endif
