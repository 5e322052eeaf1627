/* VNNI on 256-bit registers without AVX-512. On machines without it, a test compiles this file with the same
 * instruction of AVX-512VL. */
#ifndef INT8_TABLE
#define INT8_TABLE  sl_int8_avxvnni
#define LANE_DPBUSD _mm256_dpbusd_avx_epi32
#endif
#define INT8_NAME "avxvnni"
#define LANE_BITS 256
#define TILE_ROWS 6u

#include "ranker/net/int8_body.h"
