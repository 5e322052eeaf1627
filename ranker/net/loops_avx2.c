/* AVX2 and FMA. */
#define LOOP_TABLE sl_loops_avx2
#define LOOP_NAME  "avx2"
#define LANE_BITS  256

#include "ranker/net/loops_body.h"
