/* AVX-512 with bf16. */
#define BF16_TABLE  sl_bf16_avx512bf16
#define BF16_NAME   "avx512bf16"
#define LANE_BITS   512
#define LANE_DPBF16 _mm512_dpbf16_ps
#define TILE_ROWS   6u

#include "ranker/net/bf16_body.h"
