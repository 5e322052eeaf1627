/* Registers of panels, for the bodies of products: int8_body.h, bf16_body.h. The file of a tier defines LANE_BITS. */
#ifndef SL_RANKER_NET_PANEL_LANES_H
#define SL_RANKER_NET_PANEL_LANES_H

#include "distance/float_lanes.h"
#include "ranker/net/panels.h"

/* Registers of sums of a block of outputs. */
#define BLOCK_REGS (SL_PANEL_BLOCK / LANE_F)
/* Registers of weights that a tile takes: as many as registers for its sums allow. */
#if LANE_BITS == 512
#define TILE_REGS 4u
#else
#define TILE_REGS BLOCK_REGS
#endif

#endif
