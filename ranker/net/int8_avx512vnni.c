/* AVX-512 with VNNI. */
#define INT8_TABLE  sl_int8_avx512vnni
#define INT8_NAME   "avx512vnni"
#define LANE_BITS   512
#define LANE_DPBUSD _mm512_dpbusd_epi32
#define TILE_ROWS   6u

#include "ranker/net/int8_body.h"
