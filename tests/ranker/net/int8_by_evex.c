/* The avxvnni tier by AVX-512VL's form of vpdpbusd, which means the same. So machines that have AVX-512 and no AVX-VNNI
 * test its loops. */
#include <immintrin.h>

#define INT8_TABLE  int8_avxvnni_by_evex
#define LANE_DPBUSD _mm256_dpbusd_epi32

#include "ranker/net/int8_avxvnni.c"
