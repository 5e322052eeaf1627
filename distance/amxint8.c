/* AMX-INT8 beside AVX-512 with VNNI, as Sapphire Rapids has them. */
#define LANE_ISA    SL_ISA_AMXINT8
#define LANE_TABLE  sl_kernels_amxint8
#define LANE_BITS   512
#define LANE_DPBUSD _mm512_dpbusd_epi32
#define LANE_DPWSSD _mm512_dpwssd_epi32

#include "distance/amx.h"

#include "distance/body.h"
