/* AVX2 with FMA, F16C and BMI, as Haswell and Zen have them. */
#define LANE_ISA   SL_ISA_AVX2
#define LANE_TABLE sl_kernels_avx2
#define LANE_BITS  256

#include "distance/x86.h"

#include "distance/body.h"
