/* Four lanes without fused operations: every baseline machine has them. */
#define LOOP_TABLE sl_loops_scalar
#define LOOP_NAME  "scalar"
#define LANE_BITS  128

#include "ranker/net/loops_body.h"
