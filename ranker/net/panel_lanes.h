/* Registers of panels, for int8_body.h and bf16_body.h. A tier's file defines LANE_BITS. */
#ifndef SL_RANKER_NET_PANEL_LANES_H
#define SL_RANKER_NET_PANEL_LANES_H

#include "distance/float_lanes.h"
#include "ranker/net/panels.h"

/* Registers of sums for a block of outputs. */
#define BLOCK_REGS (SL_PANEL_BLOCK / LANE_F)
/* Registers of weights for a tile: as many as its sums leave free. */
#if LANE_BITS == 512
#define TILE_REGS 4u
#else
#define TILE_REGS BLOCK_REGS
#endif

#endif
