/* AVX-512 with VNNI, as Cascade Lake, Ice Lake and Zen 4 have it. */
#define LANE_ISA    SL_ISA_AVX512VNNI
#define LANE_TABLE  sl_kernels_avx512vnni
#define LANE_BITS   512
#define LANE_DPBUSD _mm512_dpbusd_epi32
#define LANE_DPWSSD _mm512_dpwssd_epi32

#include "distance/x86.h"

#include "distance/body.h"
