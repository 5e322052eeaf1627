/* Plain C: vectors of four lanes, which the compiler maps to the machine. */
#define INT8_TABLE sl_int8_scalar
#define INT8_NAME  "scalar"
#define LANE_BITS  128
#define TILE_ROWS  2u

#include "ranker/net/int8_body.h"
