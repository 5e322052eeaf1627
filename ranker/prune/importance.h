/* Importance of hidden units. Units are numbered layer by layer, from the first hidden layer on. */
#ifndef SL_RANKER_PRUNE_IMPORTANCE_H
#define SL_RANKER_PRUNE_IMPORTANCE_H

#include "ranker/train/train_step.h"

/* Number of hidden units of a net. */
size_t sl_unit_count(const sl_net_shape *shape);

/* Computes the first-order importance of each unit (Molchanov et al. 2019, arXiv 1906.10771, with a gate behind the
 * activation). It estimates how the loss changes without the unit, squares the change, and takes the mean over
 * mini-batches. The estimate sums, over the unit's outgoing weights, weight times gradient.
 * Parameters: rows is the number of training rows to use; 0: all. The spec's seed draws them. out has one entry per
 * unit.
 * Errors: SL_EVALUE (the loss is not finite). */
sl_status sl_unit_taylor(sl_trainer *trainer, size_t rows, double *out);

/* Computes for each unit the norm of its incoming weights times the norm of its outgoing weights (after Li et al. 2017,
 * arXiv 1608.08710). Scaling a ReLU unit's input up and its output down leaves the product as it is. */
void sl_unit_norms(const sl_net_shape *shape, const float *dense, double *out);

#endif
