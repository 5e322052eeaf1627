/* VNNI on 256-bit registers without AVX-512, as Alder Lake and its successors have it. A test compiles this file with
 * the AVX-512VL form of the two instructions, which means the same, on machines without this form. */
#ifndef LANE_TABLE
#define LANE_TABLE  sl_kernels_avxvnni
#define LANE_DPBUSD _mm256_dpbusd_avx_epi32
#define LANE_DPWSSD _mm256_dpwssd_avx_epi32
#endif
#define LANE_ISA  SL_ISA_AVXVNNI
#define LANE_BITS 256

#include "distance/x86.h"

#include "distance/body.h"
