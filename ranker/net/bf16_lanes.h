/* Rounds floats to bf16 by their bits. A tier's file includes this after distance/float_lanes.h. */
#ifndef SL_RANKER_NET_BF16_LANES_H
#define SL_RANKER_NET_BF16_LANES_H

#include "distance/float_lanes.h"

typedef uint32_t U __attribute__((vector_size(LANE_BITS / 8)));
typedef uint16_t H __attribute__((vector_size(LANE_BITS / 16)));

/* Rounds to nearest, ties to even: adds just under half a unit of the last kept place, and the bit of that place. A
 * carry rightly raises the exponent. NaN stays NaN. The upper half of each lane is the result. */
static AI U bf16_lanes(F x) {
    U bits = (U)x, rounded = bits + 0x7fffu + (bits >> 16 & 1), same = (U)(x == x);
    return (rounded & same) | ((bits | 0x400000u) & ~same);
}

#endif
