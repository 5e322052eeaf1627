/* Four lanes, as every machine of the baseline has them, without fused operations. */
#define LOOP_TABLE sl_loops_scalar
#define LOOP_NAME  "scalar"
#define LANE_BITS  128

#include "ranker/net/loops_body.h"