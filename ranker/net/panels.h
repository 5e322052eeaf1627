/* Packed weights: the order in memory in which the products of int8.h and bf16.h read them.
 *
 * Weights (in, out) lie in panels of 64 outputs. The last panel has as many blocks as are left. A panel has its groups
 * of inputs one after the other. A group has its inputs for each output of the panel side by side. Missing inputs and
 * outputs are zeros. */
#ifndef SL_RANKER_NET_PANELS_H
#define SL_RANKER_NET_PANELS_H

#include "base/memory.h"

#include <shortlist.h>

/* Outputs of a block, and blocks of a panel. One pass over a row's inputs computes a panel's outputs. */
#define SL_PANEL_BLOCK  16u
#define SL_PANEL_BLOCKS 4u

/* Returns the number of outputs, in whole blocks, of the panel that begins at output `from`. */
static inline size_t sl_panel_width(size_t out, size_t from) {
    const size_t most = SL_PANEL_BLOCK * SL_PANEL_BLOCKS, left = sl_round_up(out - from, SL_PANEL_BLOCK);
    return left < most ? left : most;
}

/* The shape of packed weights (in, out). */
typedef struct sl_panels {
    size_t in, out;
    size_t group; /* inputs of a group */
    size_t size;  /* bytes of a weight, 1 or 2 */
} sl_panels;

/* Packs row-major weights into a new block of *bytes. Errors: SL_ENOMEM. */
sl_status sl_panels_pack(const sl_panels *of, const void *weights, const sl_allocator *allocator, void **out,
                         size_t *bytes);

#endif
