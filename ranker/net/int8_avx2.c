/* AVX2: products of 16-bit numbers. */
#define INT8_TABLE sl_int8_avx2
#define INT8_NAME  "avx2"
#define LANE_BITS  256
#define TILE_ROWS  4u

#include "ranker/net/int8_body.h"
