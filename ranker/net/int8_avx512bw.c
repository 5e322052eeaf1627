/* AVX-512 without VNNI: products of 16-bit numbers. */
#define INT8_TABLE sl_int8_avx512bw
#define INT8_NAME  "avx512bw"
#define LANE_BITS  512
#define TILE_ROWS  4u

#include "ranker/net/int8_body.h"
