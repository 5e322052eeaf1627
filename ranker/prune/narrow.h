/* Nets with fewer hidden units: which units stay, and the weights between these. */
#ifndef SL_RANKER_PRUNE_NARROW_H
#define SL_RANKER_PRUNE_NARROW_H

#include "base/memory.h"
#include "ranker/net/net.h"

/* Chooses the units that stay: all but the least important.
 * Parameters: params says how many, and has been checked; importance has an entry a unit. kept gets 1 for each unit
 * that stays, else 0. Each layer keeps one at least. *out gets the narrower shape. Errors: SL_EINVAL (a share that
 * cannot be reached), SL_ENOMEM. */
sl_status sl_narrow_choose(const sl_net_shape *shape, const double *importance, const sl_prune_params *params,
                           const sl_allocator *allocator, unsigned char *kept, sl_net_shape *out);

/* Copies the weights between units that stay. `to` is a block of the narrower shape. */
void sl_narrow_copy(const sl_net_shape *shape, const unsigned char *kept, const float *from, float *to);

#endif
