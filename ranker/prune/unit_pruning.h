/* Structured pruning: chooses the hidden units to keep, and copies the weights between them. */
#ifndef SL_RANKER_PRUNE_UNIT_PRUNING_H
#define SL_RANKER_PRUNE_UNIT_PRUNING_H

#include "base/memory.h"
#include "ranker/net/net.h"

/* Chooses the units to keep: the most important ones.
 * Parameters: params says how many, and was checked. importance has one entry per unit. kept gets 1 for each unit to
 * keep, else 0. Each layer keeps at least one. *out gets the narrower shape.
 * Errors: SL_EINVAL (the share cannot be cut), SL_ENOMEM. */
sl_status sl_units_choose(const sl_net_shape *shape, const double *importance, const sl_prune_params *params,
                          const sl_allocator *allocator, unsigned char *kept, sl_net_shape *out);

/* Copies the weights between kept units. `to` is a block of the narrower shape. */
void sl_units_copy(const sl_net_shape *shape, const unsigned char *kept, const float *from, float *to);

#endif
