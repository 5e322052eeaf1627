/* AVX-512 without bf16: widens bf16 numbers to floats. */
#define BF16_TABLE sl_bf16_avx512bw
#define BF16_NAME  "avx512bw"
#define LANE_BITS  512
#define TILE_ROWS  6u

#include "ranker/net/bf16_body.h"
