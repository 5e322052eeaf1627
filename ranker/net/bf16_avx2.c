/* AVX2: widens bf16 numbers to floats. */
#define BF16_TABLE sl_bf16_avx2
#define BF16_NAME  "avx2"
#define LANE_BITS  256
#define TILE_ROWS  6u

#include "ranker/net/bf16_body.h"
