/* AVX-512 F, BW, VL and DQ. */
#define LOOP_TABLE sl_loops_avx512
#define LOOP_NAME  "avx512"
#define LANE_BITS  512

#include "ranker/net/loops_body.h"
