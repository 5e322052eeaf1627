/* Plain C: vectors of four lanes, which the compiler maps to the machine. */
#define BF16_TABLE sl_bf16_scalar
#define BF16_NAME  "scalar"
#define LANE_BITS  128
#define TILE_ROWS  2u

#include "ranker/net/bf16_body.h"
