/* The avxvnni tier by vpdpbusd of AVX-512VL, which does the same. Machines with AVX-512 but without AVX-VNNI so test
 * its loops. */
#include <immintrin.h>

#define INT8_TABLE  int8_avxvnni_by_evex
#define LANE_DPBUSD _mm256_dpbusd_epi32

#include "ranker/net/int8_avxvnni.c"
