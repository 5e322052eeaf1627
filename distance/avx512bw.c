/* AVX-512 F, BW, VL and DQ, as Skylake-SP has them. */
#define LANE_ISA   SL_ISA_AVX512BW
#define LANE_TABLE sl_kernels_avx512bw
#define LANE_BITS  512

#include "distance/x86.h"

#include "distance/body.h"
