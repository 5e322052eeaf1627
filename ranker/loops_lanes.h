/* What the tiers' files share before they define their lanes: the vector types, of LOOP_LANES floats. A tier's file
 * then defines load_part, store_part (n < LOOP_LANES floats), lane_fma and lane_sqrt, and includes loops_body.h. */
#ifndef SL_RANKER_LOOPS_LANES_H
#define SL_RANKER_LOOPS_LANES_H

#include "base/random.h"
#include "ranker/loops.h"

#include <string.h>

#define AI inline __attribute__((always_inline))

typedef float V __attribute__((vector_size(LOOP_LANES * 4)));
typedef int32_t I __attribute__((vector_size(LOOP_LANES * 4)));
/* The same in memory, at any address. */
typedef float VU __attribute__((vector_size(LOOP_LANES * 4), aligned(4), may_alias));

static AI V load(const float *from) {
    return *(const VU *)from;
}

static AI void store(float *to, V value) {
    *(VU *)to = value;
}

static AI V splat(float value) {
    return (V){0} + value;
}

#endif
