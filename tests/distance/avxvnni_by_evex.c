/* The avxvnni tier with AVX-512VL's form of vpdpbusd and vpdpwssd, which means the same. So machines with AVX-512 and
 * without AVX-VNNI test the tier's logic. */
#define LANE_TABLE  kernels_avxvnni_by_evex
#define LANE_DPBUSD _mm256_dpbusd_epi32
#define LANE_DPWSSD _mm256_dpwssd_epi32
#include "distance/avxvnni.c"

#include "tests/distance/kernel_checks.h"

const sl_kernels *avxvnni_by_evex(void) {
    return sl_kernels_of(SL_ISA_AVX512VNNI) ? &kernels_avxvnni_by_evex : NULL;
}
