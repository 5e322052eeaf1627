/* Four lanes, as every machine of the baseline has them, and no fused operations. */
#define LOOP_TABLE sl_loops_scalar
#define LOOP_NAME  "scalar"
#define LOOP_LANES 4u

#include "ranker/loops_lanes.h"

#include <math.h>

static AI V load_part(const float *from, size_t n) {
    V value = {0};
    memcpy(&value, from, n * sizeof *from);
    return value;
}

static AI void store_part(float *to, V value, size_t n) {
    memcpy(to, &value, n * sizeof *to);
}

static AI V lane_fma(V a, V b, V c) {
    return a * b + c;
}

static AI V lane_sqrt(V a) {
    return (V){sqrtf(a[0]), sqrtf(a[1]), sqrtf(a[2]), sqrtf(a[3])};
}

#include "ranker/loops_body.h"
